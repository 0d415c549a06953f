"""Audits running pods against the policies, and puts harmful policies to `warn`.

    settings       the process's settings, with the reason for each default
    pod_watcher    the watches, and the pods and changes they deliver
    policy_state   policies, facts, deleted pods and change times, built from watch events
    policy_status  the status of a PodPolicy, written when it differs and not too often
    events         Events on owners, and log lines
    metrics        the watchdog's metrics
    harm_brake     puts a harmful policy to `warn`; a dry run only reports it
    loop           one round: observe, brake, write, report
    process        one replica: leader election, HTTP pages, watches

The watchdog never changes a pod, nor the `spec` of a policy. It writes only Events, its own Lease, and the `status` of
a policy, in which a harmful one is put to `warn`.
"""
