"""The `machines` verb: ratios of the workload, machine types ranked for it, the autoscaler's priorities, and pools to
empty."""
