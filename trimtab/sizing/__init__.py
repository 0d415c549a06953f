"""Recommends the requests of a container, from its usage.

statistics       percentiles of the usage, whether there is enough history, and the confidence
adaptive         the request that would cost least if recent use repeated
adaptive_bounds  that request within its bounds, and the doubts about it
request          the amount of usage that becomes the request, within all bounds, with reasons
cost             the cost of a request in a month
pool_reservations  what kubelets and container runtimes of each pool use, and what is reserved for them
ranking          which machine type costs least for a workload
recommendation   usage in the published form
reasons          every reason code of this package
"""
