"""Acceptance cases that are not tests of this issue, and why. (The others carry their number in their test's name.)

Decided by the process that serves, or by a real API server, not by a decision:
    E15      a LimitRange created a second ago: how old the watch is can only be told where there is a watch
    B5       a webhook behind us sets what we match on: we are not called; the watchdog finds the pod
    H1       the 413 and the 415 (the 400 is tested): size and content type belong to the service
    H11 H14  idle connections, 1000 pods by 64 clients: measured against a server
    I8       hot reload with a broken file: the service keeps the last good set (that a broken file is told is D17)
    A20      `doctor`'s dry run against a server

Decided by a verb of the command that has its own tests, or comes with a later issue:
    I3       lint of a class that is missing from a snapshot (what the webhook does about it is A10)
    I4 I5    `explain`, and the shipped policies' own examples
    I6       the two passes offline are `admit`; the chain itself is tested in tests/admission/apiserver
    I7       the editor's header comment (that the schema takes a policy is tested)
    I10      export as a MutatingAdmissionPolicy

The arithmetic of others, which we do not repeat:
    F3 F7    how a VPA caps its target and takes a limit for a request: where it recommends, we set nothing (F1)
    D13 D14  a cpu limit that follows from memory: no action of the policy language does that

Words that the policy language does not have:
    H13      a mode given by a pod's label: a pod can only opt out
    D4       the warning when a policy that says `guaranteed: change` does change the class: it was asked for
"""
