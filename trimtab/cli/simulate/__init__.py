"""The `simulate` verb: the cluster after repeated rounds of plan and drain, until no more node can be removed."""
