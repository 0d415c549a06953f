"""The `reserved` verb: what vendors reserve of a node by their formulas, and what the kubelet and the container runtime
really use."""
