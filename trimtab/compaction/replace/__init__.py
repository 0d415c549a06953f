"""Advises where one cheaper node would take the place of one to four others.

node_templates     the next node of each node group, as the present nodes of the group show it
node_sets          which sets of nodes have pods that fit on one such node, by their sums
plan_replacements  the replacements: each set checked pod by pod, and against the limits of the pools
legacy_pools       a pool that is to be emptied: its taint, and the room that its pods need on another pool
migration          all nodes of a pool replaced by new nodes of one group
reasons            why a node group is not used

Nothing here makes a node: a replacement holds if its node group gives one.
"""
