"""How is a plan carried out, with nobody watching?

    watch → view → plan … wait … fresh view → recheck → door → record

Decisions are made in `trimtab.compaction`, of values; here they are done. One process leads, by a Lease; what it
needs to go on after a crash stands in the cluster: what undoes a cordon on the node, the rest in a ConfigMap per pool.

    settings    what can be set
    sight       the watch, read as one view
    doors       what can be done to a cluster: the verbs
    acting      the door that does it
    rehearsal   the door that does nothing
    books       what each pool remembers, and every decision told
    store       where the books are kept: one ConfigMap per pool
    drains      the next step of every drain; vanished: what those leave behind whose node or note is gone
    planning    the plan, and the drains that begin with it
    steering    successors kept off the nodes that go next
    loop        one round after the other; faults: errors of ours that keep no other from its turn
    admitting   what evicted pods would be given by policies now
    telling     a record as an Event; metrics: as numbers; figures: each pool in numbers
    process     all of it wired: leader, signals, the end
"""
