"""How do we talk to the API server? Nothing else does.

The official client brings configuration, authentication, TLS and connections; paths, bytes and meaning are ours
(its models cost thirty times our CPU: docs/decisions/0005-the-door-to-the-api-server.md). Functions raise; every error
says what was being done to what.

    errors                 what can go wrong, as one tree
    client                 bytes of one request, a stream of lines; deadlines on both; TLS; requests that another
                           thread ends
    resources              where the API server keeps what a `Snapshot` holds
    decode                 bytes → the shapes of `trimtab.cluster.api`
    transform              what we keep of an object, equal parts held once; pods held as plans take them
    listing                whole lists, page by page; everything a Snapshot holds, read once
    reflector              one list, kept equal to the server's; how it reconnects
    store, watch_state     what a reflector holds, and how it goes
    informers              many reflectors, read as one Snapshot; their changes, consumed by one thread
    capture                a cluster as a file
    objects                one object: read, applied where we own it, removed; every write fenced, and a dry run on
                           request
    nodes                  a cordon and what undoes it, in one patch; a workload's replicas
    evict                  an eviction and its named outcomes
    leader_election,       one leader, whose writes end before another's begin; a process with one
    leader_process
    signing_keys           keys of what is signed, read from their Secret
    events                 one series per thing that happens again and again
"""
