"""The `top` verb: a live view of pools and nodes, which changes nothing."""
