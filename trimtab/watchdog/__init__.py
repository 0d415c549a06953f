"""Did every running pod come through as policy says, and does any policy harm them?

    settings       what can be set, with the reason for each default
    pod_watcher    the watches, and what they said since the last round
    policy_state   policies, facts and pods from changes, and since when it is so
    policy_status  what a PodPolicy's status says, written when it differs and not too often
    events         Events on owners, log lines, metrics: one record, several sinks
    metrics        the watchdog in numbers
    harm_brake     a harmful policy is put to `warn`; a dry run only says so
    loop           observe, brake, write, report; again and again
    process        one replica: election, pages, watches

It never touches a pod: the only things it writes are a policy's `status`, a harmful policy's `spec.mode`, Events and
its own Lease.
"""
