"""The `why` verb: why a pod is as it is, by its annotation, the policies, the compactor's decisions, Events and the
webhook's log."""
