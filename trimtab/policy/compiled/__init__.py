"""Compiles policies to MutatingAdmissionPolicies, which the API server evaluates itself, without calling a webhook.

`mutating_policy.compile_mutating_policy` returns the manifests for one policy, or the field of the policy that cannot
be compiled.
"""
