"""Recommended requests of a container, from its usage.

statistics       percentiles of the usage, whether there is enough history, and the confidence
adaptive         the request that would cost least if recent use repeated
adaptive_bounds  that request within its bounds, and the doubts about it
request          the amount of usage that becomes the request, within all bounds, with reasons
cost             the cost of a request in a month
recommendation   usage in the published form
reasons          every reason code of this package
"""
