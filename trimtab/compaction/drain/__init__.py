"""Decides the next step of every drain in progress.

cluster_view           the observed cluster at one time
annotation             the annotation on a node that is being drained
start                  the number of nodes of a wave that may be drained now, and the drains that start
state_machine,         the next step of a drain, and the possible steps
actions
drain_order            which of several drains takes its next step first
timeouts, overdue      how long a drain may take; late successors, and nodes that the autoscaler did not remove
release, backoff       drained nodes that are uncordoned for pending pods; how long a pool backs off
savings, waiting       what removed nodes have saved; what a pool waits for before its next drain
pool_state             the state of a pool that survives a restart
"""
