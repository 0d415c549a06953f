"""The `machines` verb: the workload's ratios, machine types ranked for it, the autoscaler's priorities, old pools."""
