def page(told):
    return ""
