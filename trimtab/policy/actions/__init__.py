"""The actions of a policy, one file per action: its settings, and how it changes one pod.

An action changes no pod itself. For each policy that matches a pod, `propose_changes` claims fields
(`PodChanges.claim_field`) or records why they stay as they are (`PodChanges.leave_unchanged`); `PodChanges` keeps the
first policy to decide each field. `find_unmet_field` names the field in which a pod differs from what a required action
demands.
"""
