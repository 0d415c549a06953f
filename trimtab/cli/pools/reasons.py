"""The reasons why a valid pool does nothing, besides the reasons that the compactor itself reports."""

from trimtab.cluster.reason import Code

OTHER_NAMESPACE = Code(
    "pool-in-other-namespace",
    "The compactor ignores a pool in a namespace that it does not read.",
    "Move the ConfigMap to the compactor's namespace, or name that one with `-n`.",
)
