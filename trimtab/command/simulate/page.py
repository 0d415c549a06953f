def page(told): return ""
