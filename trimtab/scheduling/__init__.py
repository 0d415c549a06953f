"""Would these pods fit on those nodes?

kube-scheduler's filters (Kubernetes 1.36) as a library: pure, in integers, and made to be asked a hundred thousand
times. A pod fits, or the first constraint that says no is named. What cannot be judged does not fit.

    node_filters           labels, names and taints: what no move changes
    topology               which pods count for an affinity, anti-affinity, spread or port, and in which domain
    cluster_model          nodes, pods and their classes as numbers, built once per snapshot; what is free at this
                           moment
    pod_class,             what pods of one template share; pods → classes
    classify_pods
    filters                one pod, one node: None, or the first reason against it
    preferences            where a pod would rather be
    best_fit_index,        open nodes by free room, for best fit; what a moving pod needs of them
    placement_requests
    drain_simulation       if this node went, where would all its pods go, together?
    reasons                every code of this package
"""
