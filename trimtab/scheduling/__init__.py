"""kube-scheduler's Filter step (Kubernetes 1.36) as a library: it decides whether pods fit on nodes.

The library is pure, calculates in integers, and is fast enough for a hundred thousand checks per plan. For a pod that
does not fit, it names the first constraint that rejects the pod. A pod that cannot be judged counts as not fitting.

    node_filters           labels, names and taints: the filters whose result no move of a pod changes
    topology               which pods an affinity, anti-affinity, spread or port counts, and in which domain
    cluster_model          nodes, pods and pod classes as numbers, built once per snapshot; the capacity that is free
    pod_class,             what the pods of one template share; pods → classes
    classify_pods
    filters                one pod, one node: None, or the first reason for a rejection
    preferences            scores for the nodes that a pod prefers
    best_fit_index,        open nodes by free capacity, for best fit; what a moving pod requires of a node
    placement_requests
    drain_simulation       the places of all pods of a node when it is drained
    reasons                every reason code of this package
"""
