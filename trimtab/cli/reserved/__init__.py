"""`trimtab reserved`: what vendors reserve of a node by their formulas, and what its kubelet and runtime really use."""
