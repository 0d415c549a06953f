"""What each permission of an account is for. The reference page and the messages about missing permissions contain
these texts."""

from trimtab.cli.install.names import CERTIFICATE_SECRET, CONFIGURATION_NAME, METRICS_API, account_name

_OWNERS = "the owners of pods, by which policies match"
_FACTS = {
    "namespaces": "the labels that policies match, opt-outs, and the annotation that pauses everything",
    "nodes": "whether any node can hold the pod as it would be changed",
    "limitranges": "the bounds that the API server checks after the webhook",
    "resourcequotas": "whether the changed pod stays within the namespace's quota",
    **dict.fromkeys(
        ("replicationcontrollers", "deployments", "replicasets", "statefulsets", "daemonsets", "jobs", "cronjobs"),
        _OWNERS,
    ),
    "horizontalpodautoscalers": "whether the number of replicas follows from the requests",
    "verticalpodautoscalers": "whether a VPA sets the requests, and what it recommends",
    "runtimeclasses": "the overhead and the nodes of the class that a policy names",
    "priorityclasses": "whether the class that a policy names exists",
    "podpolicies": "the policies",
    "mutatingwebhookconfigurations": "whether the VPA's webhook is registered",
    "endpointslices": "whether the VPA's webhook answers",
    "leases": "whether the scheduler runs that a policy names",
}
_OWN_LEASE = "so that one replica leads"
_RECOMMENDATIONS = "the recommendations that the recommender writes"
_SIGNING_KEY = "the key that signs what it writes on objects"
_CERTIFICATE = "the serving certificate, which the replicas issue and renew"
_AUTOSCALER = "the cluster autoscaler's status: its health, and the node groups that it can grow"
_COMPACTOR = {
    "pods": "the pods of each node, and whether their successors are ready",
    "nodes": "which nodes there are; to cordon and uncordon them, and to sign on them which drain it is",
    "namespaces": "the annotation that pauses everything",
    "persistentvolumes": "the zones and nodes of a pod's volumes",
    "persistentvolumeclaims": "the volumes of a pod",
    **dict.fromkeys(
        ("replicationcontrollers", "deployments", "replicasets", "statefulsets", "jobs", "daemonsets", "cronjobs"),
        "the owners of pods: whether one creates a successor, and whether all of its pods are ready",
    ),
    "poddisruptionbudgets": "how many pods of a workload may be missing",
    "csinodes": "how many volumes a node attaches",
    "capacitybuffers": "the capacity that is reserved for pods that do not run yet",
    "podtemplates": "the pods for which a CapacityBuffer reserves capacity",
    **dict.fromkeys(
        ("resourceclaims", "resourceslices", "deviceclasses"), "the devices that pods have and nodes offer"
    ),
    "pods/eviction": "to evict the pods of a node that is drained, within their budgets",
    "pods.metrics.k8s.io": "what pods without requests use now",
    "events": "to report drains and evictions",
    "poolstatuses": "what `kubectl get pools` shows",
    "deployments/scale": "to give a workload of one replica a second one while its pod moves",
    "pods/resize": "to resize running pods, as policies with `running: resize` say",
}
_RECOMMENDER = {
    "pods": "the owners of containers, and OOM kills",
    **dict.fromkeys(
        ("replicationcontrollers", "deployments", "replicasets", "statefulsets", "daemonsets", "jobs", "cronjobs"),
        "the owners of pods: usage is stored for each",
    ),
    "pods.metrics.k8s.io": "what containers use now, without a Prometheus",
    **dict.fromkeys(("verticalpodautoscalers", "verticalpodautoscalercheckpoints"), "the usage that a VPA has stored"),
}
_UNINSTALL = {
    "apiservices": "to end the calls to the metrics API",
    **dict.fromkeys(
        ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"), "to end the calls to the webhook"
    ),
    "nodes": "to uncordon nodes, and to remove annotations and taints",
    "pods": "whether the processes have stopped",
    "deployments/scale": "to stop the processes, and to scale workloads back to one replica",
    "secrets": "the key by which it knows what the compactor signed",
    "leases": "to delete what the processes wrote",
    "configmaps": "to delete what the processes wrote",
    "poolstatuses": "to delete what the compactor wrote",
}
_CLUSTER = {
    "webhook": _FACTS,
    "watchdog": {
        **_FACTS, "pods": "the running pods, which it compares with the policies",
        "podpolicies/status": "the status of each policy", "events": "to report pods that the webhook missed",
    },
    "compactor": {**_FACTS, **_COMPACTOR},
    "recommender": _RECOMMENDER,
    METRICS_API: {
        "pods": "the pods whose metrics it reads",
        "subjectaccessreviews": "whether a user may read a metric",
        "apiservices": "the caBundle by which API servers trust it",
    },
    "uninstall": _UNINSTALL,
}  # fmt: skip
"""Process → resource → what its permissions in the whole cluster are for."""
_OWN_NAMESPACE = {
    "webhook": {"configmaps": _RECOMMENDATIONS, "secrets": _SIGNING_KEY},
    "watchdog": {"configmaps": _RECOMMENDATIONS, "leases": _OWN_LEASE},
    "compactor": {
        "leases": _OWN_LEASE, "secrets": _SIGNING_KEY,
        "configmaps": "the pools, and its state of each pool", "poolstatuses": _COMPACTOR["poolstatuses"],
    },
    "recommender": {"leases": _OWN_LEASE, "configmaps": "its checkpoints, and the recommendations"},
    METRICS_API: {"configmaps": "the rules of its metrics"},
    "uninstall": _UNINSTALL,
}  # fmt: skip
"""Process → resource → what its permissions in Trimtab's own namespace are for."""


def purpose_of(process: str, resource: str, *, group: str = "", name: str = "", verb: str = "", own: bool) -> str:
    """Returns what a permission is for. `own`: whether the permission is for Trimtab's own namespace only."""
    if name in (CERTIFICATE_SECRET, f"{account_name(METRICS_API)}-tls"):
        return _CERTIFICATE
    if name == CONFIGURATION_NAME and process == "webhook":
        return "the caBundle by which API servers trust the webhook"
    if resource == "configmaps" and not own and process != "uninstall":
        return _AUTOSCALER
    if (process, resource, verb) == ("watchdog", "podpolicies", "patch"):
        return "to set a policy that harms pods to `warn`"
    purposes = _OWN_NAMESPACE[process] if own else _CLUSTER[process]
    return purposes.get(f"{resource}.{group}") or purposes.get(resource, "")
