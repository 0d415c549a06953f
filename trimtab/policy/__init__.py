"""What may be done to a pod, and when?

podpolicy,             a PodPolicy, as types; the scalars of the language: quantities, percentages, name
field_types            patterns, label keys
schema, status         the JSON Schema and the CRD generated from them; what the cluster shows of a policy's
                       effect
load                   files → policies, or every mistake in them
lint, lint_conflicts,  which valid policies will not do what they say?
lint_fields
cluster_facts          what a decision may know of the cluster
facts_cache,           the same, grown with the cluster's changes
facts_index,
retained_facts,
lazy_property
pod_context            one pod in its surroundings: owners, roles, which autoscalers size it
autoscalers,           what else sets its fields, and from which usage
vpa_webhook,
field_owners,
recommendation_age,
recorded_usage
match,                 does this policy mean this pod and which containers; those that do; those in force
applicable_policies,
policy_store
actions/               one file per action: its settings, and what it would do
pod_changes            which policy decided which field first; what was changed, left alone, overruled
affinity_conflicts,    can any node satisfy both of these; actions a pod must have
required_actions,
required_action_rules
clamp_resources,       requests and limits within all bounds; written into the containers
write_resources
pod_size_limits        how much one pod may hold
decide                 pod + policies + facts → Decision
changed_annotation     which policies changed what, written on the pod itself
validating_policy      a ValidatingAdmissionPolicy for required actions
reasons                every code of this package
"""
