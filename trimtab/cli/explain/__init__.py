"""Explanations of reason codes, settings and fields, without a cluster and without the documentation."""
