"""The `plan` verb: the nodes that can be drained, a target for each of their pods, and why every other node stays."""
