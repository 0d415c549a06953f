"""The `simulate` verb: the cluster after round upon round of plans, until no more node can be removed."""
