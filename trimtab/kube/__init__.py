"""How do we talk to the API server? This is the only door.

The official client brings configuration, authentication, TLS and connections; paths, bytes and meaning are ours
(its models cost thirty times our CPU: docs/decisions/0005-the-door-to-the-api-server.md). Doors raise; every error
says what was being done to what.

    errors     what can go wrong, as one tree
    client     bytes of one request, a stream of lines; deadlines on both
    waiting    who waits for an answer, and how another thread ends that
    tls        connections to clusters whose CA is older than Python 3.13's rules
    kinds      where the API server keeps what a `Snapshot` holds
    decode     bytes → the shapes of `trimtab.cluster.api`
    keep       what we keep of an object, equal parts held once
    planned    pods held as plans take them
    listing    whole lists, page by page; everything a Snapshot holds, read once
    reflector  one list, kept equal to the server's
    watch      many reflectors, read as one Snapshot; how old it is
    feed       what watches tell, taken by one thread; some lists come later
    backoff    how long until the next try
    road       is the server back? one of many lists asks, the others wait
    capture    a cluster as a file
    writer     every write: fenced, rehearsed on request, under our name
    objects    one object: read, applied where we own it, taken away
    whole      one object as plain values, put back only if nobody else was quicker
    nodes      a cordon and what it takes to undo it, in one patch
    scale      a workload's replicas, from one number to another
    evict      an eviction and its named outcomes
    lease      one leader, whose writes end before another's begin
    replicated what can be set about a process of which one replica works
    replica    such a process: its name, its part in the election, its pages, its end
    events     one series per thing that happens again and again
"""
