"""Trimtab: a Kubernetes admission webhook that sets a few fields of new pods, and a compactor that drains nodes which
the cluster no longer needs."""
