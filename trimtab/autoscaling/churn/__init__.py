"""A cluster that never rests: what happens in it, what an autoscaler and Trimtab make of it, and how they are judged.

dice             draws that are the same for the same seed, on every machine
churn_script     the events of some hours: changed scales, rollouts, Jobs, lost machines, budgets, cordons
pod_shapes       sizes and lifetimes of pods, from a published trace or generated
churn_history    what a watch of nodes, pods and budgets showed, as values
churn_outcome    a history → machine hours, evictions, waits, machines that were bought
stand_in_rules   the rules of the cluster autoscaler for which the stand-in stands, with their sources
stand_in         the stand-in for the cluster autoscaler: one scan as a function of values
scale_up         the stand-in's part that adds nodes
churn_cluster    a cluster in memory: controllers, kube-scheduler's filters, kubelets
"""
