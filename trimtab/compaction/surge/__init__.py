"""Lets a Deployment have more pods for a while, so that a PodDisruptionBudget which allows no eviction allows one."""
