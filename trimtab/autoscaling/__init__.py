"""Checks whether HPAs, VPAs, disruption budgets, the cluster autoscaler, schedulers and limits work together, and
advises where they do not (`trimtab lint`).

objects                the API objects as the rules read them
container_amounts      requests, limits and quality of service of a pod template
usage_history          what a container has used, as far as it is known
lint_snapshot,         all objects of one run, and how they belong together; read from documents
read_snapshot
node_sizes             what the nodes of a snapshot have for pods
request_changes        the changes of a manifest that set a request, so that the API server accepts the result
rule                   a rule, its findings, and the changes that fix them
lint                   all rules over one snapshot: findings, what is ignored, what was not checked
baseline               findings that are known and accepted
fixes                  findings → changed manifests
replica_prediction     the replica counts that an HPA and a VPA drive each other to
simulation/            what other flags of the VPA's recommender, or of the autoscaler, would have done
rules/                 one small function per rule, one file per theme
"""
