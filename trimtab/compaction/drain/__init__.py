"""What is the next step of a drain?

cluster_view           what is observed at one moment
annotation             what is written on a node that is being drained
start                  how many nodes of a wave may be drained now, which drains start
state_machine,         the next step, and which steps there are
actions
timeouts, overdue      how long a drain may take; successors that are late, nodes the autoscaler did not remove
release, backoff       nodes uncordoned again; how long a pool then waits
pool_state             what a pool remembers over a restart
"""
