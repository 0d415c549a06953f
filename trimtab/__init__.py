"""Trimtab: a few fields set when a pod is admitted, and the right node emptied at the right moment."""
