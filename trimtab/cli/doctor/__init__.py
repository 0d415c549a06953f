"""The `doctor` verb: it checks an installation, and reports findings, each with a fix.

cluster_reader         reads the cluster, reviews permissions, creates pods that are not stored (dry run)
observed               the state of a cluster: each part has a value, None if absent, or Unreadable with the reason
permissions            the permissions that the processes need
finding                one finding: severity, reason, fix
check_*                the checks: pure functions from an `ObservedCluster` to findings
command                all checks in order, the report, `trimtab doctor`
"""
