"""The `reserved` verb: what vendors reserve of a node by their formulas, and what its kubelet and container runtime
really use."""
