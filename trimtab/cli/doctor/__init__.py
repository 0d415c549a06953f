"""The `doctor` verb: it checks an installation, and reports findings, each with a fix.

cluster_reader         reads the cluster, reviews permissions, creates pods that are not stored (dry run)
observed               the state of a cluster: each part as it is, None if absent, or Unreadable with the reason;
                       the permissions that the processes need
finding                one finding: severity, reason, fix
check_installation,    the checks: pure functions from an `ObservedCluster` to findings
check_webhook,
check_integrations,
check_signatures
command                all checks in order, the report, `trimtab doctor`
"""
