"""The `runtimeclass` verb: what a sandbox runtime costs for each pod."""
