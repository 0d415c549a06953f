"""The actions of a policy, one file per action: its settings, and how it changes one pod.

An action does not change the pod itself. For each policy that matches a pod, `propose_changes` claims fields
(`PodChanges.claim_field`), or records why fields stay as they are (`PodChanges.leave_unchanged`). `PodChanges` lets the
first policy that claims a field decide it. `find_unmet_field` returns the field in which a pod differs from what a
required action demands.
"""
