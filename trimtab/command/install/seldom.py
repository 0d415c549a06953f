"""Which rights are used only in need, and in which? All others are used from the first minute."""

_VPA = "a VerticalPodAutoscaler's definition is installed; until then a list answers 404"
_VPA_CALLED = "the VPA's webhook is registered: does anybody answer for it?"
_TOLD = "there is something to tell of an object"
_TOLD_BEFORE = "an Event stands that an earlier life of the process made: its count goes on"
_FIRST = "the first is written: server-side apply of what is not there yet is checked as create, too"

SELDOM: dict[tuple[str, str, str], str] = {
    ("webhook", "watch", "verticalpodautoscalers"): _VPA,
    ("webhook", "list", "endpointslices"): _VPA_CALLED,
    ("webhook", "watch", "endpointslices"): _VPA_CALLED,
    ("watchdog", "watch", "verticalpodautoscalers"): _VPA,
    ("watchdog", "list", "endpointslices"): _VPA_CALLED,
    ("watchdog", "watch", "endpointslices"): _VPA_CALLED,
    ("watchdog", "patch", "podpolicies"): "a policy harms pods: the brake puts it to `warn`",
    ("watchdog", "create", "events"): _TOLD,
    ("watchdog", "patch", "events"): _TOLD,
    ("watchdog", "get", "events"): _TOLD_BEFORE,
    ("compactor", "watch", "verticalpodautoscalers"): _VPA,
    ("compactor", "create", "configmaps"): _FIRST,
    ("compactor", "get", "deployments/scale"): "a pool lets a workload's only replica move: it gets a second one first",
    ("compactor", "patch", "deployments/scale"): "the same",
    ("compactor", "patch", "events"): "the same happens to a node or pool again within an hour",
    ("compactor", "get", "events"): _TOLD_BEFORE,
    ("recommender", "list", "verticalpodautoscalers"): _VPA,
    ("recommender", "list", "verticalpodautoscalercheckpoints"): _VPA,
    ("recommender", "list", "pods"): "usage is read moment by moment: there is no Prometheus",
    ("recommender", "create", "configmaps"): _FIRST,
    ("recommender", "patch", "configmaps"): "there is usage: checkpoints and recommendations",
    ("recommender", "delete", "configmaps"): "workloads went, and with them a shard",
    ("uninstall", "get", "deployments/scale"): "a compactor died while a workload had a second replica of ours",
}
"""(process, verb, resource) → when. A test holds it against what an API server's audit log says was used."""
