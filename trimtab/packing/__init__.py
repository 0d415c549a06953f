"""Would these pods fit on those nodes?

The scheduler's truth (Kubernetes 1.36) as a library: pure, in integers, and made to be asked a hundred thousand
times. A pod fits, or the first constraint that says no is told in words. What cannot be judged does not fit.

    nature     labels, names and taints: what no move changes
    groups     who counts for whose affinity, anti-affinity, spread and ports, and in which domain
    world      nodes, pods and their kinds as numbers: built once per snapshot
    room       what is free at this moment, changed by taking and giving back
    fit        one pod, one node: None, or the first reason against it
    wishes     where a pod would rather be
    shelves    open nodes by free room, for best fit
    drain      if this node went, where would all its pods go, together?
"""
