"""The `idle` verb: it shows workloads that could sleep, claims that are mostly empty, and objects that no pod names."""
