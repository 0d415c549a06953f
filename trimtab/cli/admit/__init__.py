"""The `admit` verb: what admission would change in the pods of manifests, and how running pods differ from that."""
