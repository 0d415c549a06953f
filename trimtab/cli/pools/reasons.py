"""The reasons why a valid pool does nothing, besides the reasons that the compactor itself reports."""

from trimtab.cluster.reason import Code

OTHER_NAMESPACE = Code(
    "pool-in-other-namespace",
    "The ConfigMap of a pool is in a namespace that the compactor does not read, so the compactor ignores the pool.",
    "Move the ConfigMap to the compactor's namespace. If the compactor runs in another namespace, pass that "
    "namespace with `-n`.",
)
