"""Facts about machine types, and prices of nodes.

machine_types      facts: size, architecture, limits, measured speed
prices             list prices, effective prices in OpenCost's CSV form, and the price of one node from them
price_answers      the same prices from OpenCost's API and from Prometheus
expander_map,      the map of the cluster autoscaler's priority expander, read and matched as the autoscaler does it;
go_regexp          Go's regular expressions, as far as Python means the same by them
packing_scheduler  a kube-scheduler that packs nodes
"""
