"""Which nodes can go, in which order, and where does every pod go?

Decisions only: a snapshot, settings and the moment in; a plan that says why out. Nothing is cordoned or evicted here.

    blockers      may this pod move? said: what an annotation that means "leave it" says
    candidates    may this node be tried, and may its pool be planned now?
    promises      room kept for pods that are not there yet
    prepare       everything a search needs, read off the world once
    weigh         what each node saves, and in which order nodes are tried
    search        which set of nodes goes together; improve: could the set be better? choose: both, over orders
    steer         among places that fit, which one do the pods like better?
    limits        minimum sizes and room that is kept; lasts: the last node of a zone that something needs
    waves         budgets as one ledger: who goes in which wave
    replay        would the plan go through, move by move?
    bound         how much could go at all; bounded: of one prepared world
    plan          all of it: a list of waves, and a reason for every node that stays
    first         only the first wave, for whoever plans again before the second
    explain       the chain of reasons for one node or pod, in words
    recheck       are the steps of a round still right, a moment later, together?
    simulate      a plan carried out on a simulated cluster, round by round
    pace          how many nodes of a wave may be emptied right now
    observations  what earlier rounds saw

Of a drain that is under way:

    view          what is seen at one moment
    note          what stands on a node that is being emptied
    begin         which drains begin, and what their notes say
    conduct       the next step of a drain; actions: what steps there are; hurry: has somebody waited for too long?
    untaken       why did the autoscaler not take an empty node?
    terms         how patient it all is
    memory        what a pool remembers over a restart
"""
