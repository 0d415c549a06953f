"""The client for the Kubernetes API server. No other package talks to the API server.

The official client provides configuration, authentication, TLS and connections; paths, bytes and decoding are handled
here, because the official models need thirty times the CPU time (docs/decisions/0005-the-door-to-the-api-server.md).
Functions raise errors, and every error names the operation and the object.

    errors                 the tree of errors
    client                 one request, or a stream of lines, each with deadlines; TLS; interruption by another thread
    resources              where the API server has the kinds of a `Snapshot`
    decode                 bytes → the shapes of `trimtab.cluster.api`
    transform              the fields of an object that are retained, equal parts stored once; pods as the planner reads
                           them
    listing                whole lists, page by page; all kinds of a Snapshot, read once
    reflector              one list that follows the server's; reconnecting
    store, watch_state     the objects of a reflector, and its health
    informers              many reflectors as one Snapshot; their changes, for one thread
    capture                a cluster as a file
    whole_objects          every object with all its fields, to find what refers to an object
    objects                one object: read, applied, deleted; every write is fenced, and a dry run on request
    nodes                  a cordon and its reversal, in one patch; the replicas of a workload
    evict, resize          an eviction, and a resize of a running pod, with their outcomes
    leader_election        one leader, whose writes end before another leader's begin
    certificate_rotation   one serving certificate for all replicas
    signing_keys           signing keys in their Secret
    events                 Events, one series for a repeated occurrence
"""
