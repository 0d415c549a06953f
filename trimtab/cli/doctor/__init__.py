"""Is everything wired? What was read, as values; what is wrong with it, and what mends it.

cluster_reader         reads the cluster, asks for permissions, creates pods that are not stored (dry run)
observed               what was read: each thing as it is, absent, or Unreadable with why; permissions that are
                       needed
finding                one finding: severity, reason, fix
check_installation,    the checks: an `ObservedCluster` in, findings out; pure
check_webhook,
check_integrations,
check_signatures
command                all checks in order, the report, `trimtab doctor`
"""
