"""Policies for pods: the policy language, and the decision on what to change in a pod.

podpolicy,             a PodPolicy as types; checked scalars of the language: quantities, percentages, name
field_types            patterns, label keys
schema, status         the JSON Schema and the CRD generated from the types; the status that shows a policy's effect
load                   loads policies from files, or reports every mistake in them
lint, lint_conflicts,  find valid policies that will not do what they say
lint_fields
cluster_facts          what a decision may read of the cluster
watched_facts,         policies, and the same facts, built from the changes that watches deliver
facts_index
decision_reads         the record of what a decision has read, and whether it would read the same now
pod_context            one pod with its surroundings: owners, roles, usage
autoscalers,           what else sets the pod's fields: VPAs, HPAs, managers that apply the pod again; and the
vpa_webhook,           recorded usage that requests are computed from
field_owners,
recommendation_age,
recorded_usage
match,                 which policies match the pod and apply to it
applicable_policies
actions/               one file per action: its settings, and how it changes a pod
pod_changes            which policy decided which field first; changed, kept and overruled fields
affinity_conflicts,    contradictions between conditions on nodes; actions that a pod must have
required_actions,
required_action_rules
clamp_resources,       requests and limits within all bounds; written into the containers
write_resources
pod_size_limits        the largest pod that is decided on
decide                 pod + policies + facts → Decision
changed_annotation     the annotation that records which policies changed what
validating_policy      a ValidatingAdmissionPolicy for required actions
reasons                every reason code of this package
"""
