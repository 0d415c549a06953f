"""What is wrong with an installation, and why a pod is as it is: the state of a cluster is read first, then judged.

cluster_reader         reads the cluster, reviews permissions, creates pods that are not stored (dry run)
observed               the state of a cluster: each part has a value, None if absent, or Unreadable with the reason
permissions            the permissions that the processes need
finding                one finding: severity, reason, fix
check_*                the checks: pure functions from an `ObservedCluster` to findings
gone_pod, pending_pod, why a pod is gone, waits or has other values than its template
original_values
"""
