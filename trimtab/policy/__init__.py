"""What may be done to a pod, and when?

vocabulary  the scalars of the language: quantities, percentages, name patterns, label keys
document    a PodPolicy, as types; schema: the JSON Schema and the CRD generated from them
load        files → policies, or every mistake in them; lint: which sound ones will not do what they say?
facts       what a decision may know of the cluster
subject     one pod in its surroundings: owners, roles, who sizes it (vpa, hpa)
match       does this policy mean this pod; containers: and which of its containers?
actions/    one file per action: its settings, and what it would do
draft       who decided which field first; what was changed, left alone, overruled
feasible    can any node satisfy both of these?
settle      requests and limits together, against all that bounds them; rewrite: written into the containers
decide      pod + policies + facts → Decision
status      what the cluster shows of a policy's effect
marker      which policies changed what, written on the pod itself
reasons     every code of this room
"""
