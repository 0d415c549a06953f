"""What may be done to a pod, and when?

vocabulary  the scalars of the language: quantities, percentages, name patterns, label keys
document    a PodPolicy, as types; the JSON Schema and the CRD are generated from them
load        files → policies, or every mistake in them
facts       what a decision may know of the cluster
subject     one pod in its surroundings: owners, roles, who sizes it
match       does this policy mean this pod, and which of its containers?
actions/    one file per action: its settings, and what it would do
draft       who decided which field first; what was changed, left alone, overruled
decide      pod + policies + facts → Decision
"""
