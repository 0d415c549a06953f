"""The main job end to end on this machine, without a cluster."""
