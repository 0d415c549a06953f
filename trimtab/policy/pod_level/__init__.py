"""Requests of whole pods (`spec.resources`, pod-level resources): when a pod may have one."""
