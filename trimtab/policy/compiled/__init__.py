"""Compiles policies to MutatingAdmissionPolicies, which the API server evaluates itself: no webhook is called.

`mutating_policy.compile_mutating_policy` returns the manifests of one policy, or the part of it that cannot be carried.
"""
