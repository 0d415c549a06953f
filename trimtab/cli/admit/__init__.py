"""The `admit` verb: the outcome of admission for the pods of manifests, and the differences of running pods."""
