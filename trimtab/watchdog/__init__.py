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

What is compared: a new decision is made for each running pod *as it was submitted, as far as that can be known*. What
the API server sets before it calls a webhook stays; the generated name, the node and the status are removed. A pod that
Trimtab changed has the annotation with which a second decision finds nothing to change; if it finds a change, the pod
lacks it. Equal pods are decided once, and again only when a policy or a fact that was read changes. A value that would
be set differently today is not reported. The first of these causes that applies is reported: no webhook is registered;
the pod is older than the policy's last edit (by its managed fields); Trimtab admitted the pod and would decide
differently; the pod is older than the registration; otherwise, the webhook missed the pod.

Overhead is stale if it differs from that of the class, and missing if the pod has none and is younger than the last
edit of the class. The youngest pod of a class shows which component writes overhead.
"""
