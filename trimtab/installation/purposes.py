"""What each permission of an account is for. The reference page and the messages about missing permissions contain
these texts."""

from trimtab.installation.names import CERTIFICATE_SECRET, CONFIGURATION_NAME, METRICS_API, account_name

_OWNERS = "to read the owners of pods, by which policies match"
_FACTS = {
    "namespaces": "to read the labels that policies match, the opt-outs, and the annotation that pauses Trimtab",
    "nodes": "to check whether any node can hold the pod as it would be changed",
    "limitranges": "to read the bounds that the API server checks after the webhook",
    "resourcequotas": "to check whether the changed pod stays within the namespace's quota",
    **dict.fromkeys(
        ("replicationcontrollers", "deployments", "replicasets", "statefulsets", "daemonsets", "jobs", "cronjobs"),
        _OWNERS,
    ),
    "horizontalpodautoscalers": "to know whether the number of replicas depends on the requests",
    "verticalpodautoscalers": "to know whether a VPA sets the requests, and what the VPA recommends",
    "runtimeclasses": "to read the overhead and the nodes of the RuntimeClass that a policy names",
    "priorityclasses": "to check whether the PriorityClass that a policy names exists",
    "podpolicies": "to read the policies",
    "mutatingwebhookconfigurations": "to know whether the VPA's webhook is registered",
    "endpointslices": "to know whether the VPA's webhook answers",
    "leases": "to know whether the scheduler that a policy names runs",
}
_OWN_LEASE = "to let only one replica lead"
_RECOMMENDATIONS = "to read the recommendations that the recommender writes"
_SIGNING_KEY = "to read the key that signs annotations"
_CERTIFICATE = "to read and write the serving certificate, which the replicas issue and renew"
_AUTOSCALER = "to read the cluster autoscaler's status: its health, and the node groups that it can grow"
_COMPACTOR = {
    "pods": "to see the pods of each node, and whether their successors are ready",
    "nodes": "to see which nodes exist, to cordon and uncordon nodes, and to write the signed drain annotation on them",
    "namespaces": "to read the annotation that pauses Trimtab",
    "persistentvolumes": "to read the zones and nodes of a pod's volumes",
    "persistentvolumeclaims": "to read which volumes a pod has",
    **dict.fromkeys(
        ("replicationcontrollers", "deployments", "replicasets", "statefulsets", "jobs", "daemonsets", "cronjobs"),
        "to read the owners of pods: whether an owner creates a successor, and whether all of its pods are ready",
    ),
    "poddisruptionbudgets": "to read how many pods of a workload may be unavailable",
    "csinodes": "to read how many volumes a node can attach",
    "csidrivers": "to read whether the scheduler checks that a volume's driver is on the node",
    "storageclasses": "to read where a volume that ends with its pod can be made again",
    "capacitybuffers": "to read the capacity that is reserved for pods that do not run yet",
    "podtemplates": "to read the pods for which a CapacityBuffer reserves capacity",
    **dict.fromkeys(
        ("resourceclaims", "resourceslices", "deviceclasses"), "to read the devices that pods have and nodes offer"
    ),
    "pods/eviction": "to evict the pods of a node that is drained, within their PodDisruptionBudgets",
    "pods.metrics.k8s.io": "to read what pods without requests use now",
    "events": "to report drains and evictions as Events",
    "poolstatuses": "to write what `kubectl get pools` shows",
    "deployments/scale": "to give a workload of one replica a second replica while its pod moves",
    "pods/resize": "to resize running pods, as policies with `running: resize` require",
}
_RECOMMENDER = {
    "pods": "to read the owners of containers, and OOM kills",
    **dict.fromkeys(
        ("replicationcontrollers", "deployments", "replicasets", "statefulsets", "daemonsets", "jobs", "cronjobs"),
        "to read the owners of pods, because usage is stored for each owner",
    ),
    "pods.metrics.k8s.io": "to read what containers use now, if there is no Prometheus",
    **dict.fromkeys(
        ("verticalpodautoscalers", "verticalpodautoscalercheckpoints"), "to read the usage that a VPA has stored"
    ),
}
_UNINSTALL = {
    "apiservices": "to end the API server's calls to the metrics API",
    **dict.fromkeys(
        ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
        "to end the API server's calls to the webhook",
    ),
    "nodes": "to uncordon nodes, and to remove annotations and taints",
    "pods": "to see whether the processes have stopped",
    "deployments/scale": "to stop the processes, and to scale workloads back to one replica",
    "secrets": "to read the key that verifies what the compactor signed",
    "leases": "to delete the objects that the processes wrote",
    "configmaps": "to delete the objects that the processes wrote",
    "poolstatuses": "to delete the objects that the compactor wrote",
}
_CLUSTER = {
    "webhook": _FACTS,
    "watchdog": {
        **_FACTS,
        "pods": "to read the running pods, which the watchdog compares with the policies",
        "podpolicies/status": "to write the status of each policy, and to set a policy that harms pods to `warn`",
        "events": "to report pods that the webhook missed",
    },
    "compactor": {**_FACTS, **_COMPACTOR},
    "recommender": _RECOMMENDER,
    METRICS_API: {
        "pods": "to read the pods whose metrics are served",
        "subjectaccessreviews": "to check whether a user may read a metric",
        "apiservices": "to write the caBundle with which API servers trust the metrics API",
    },
    "uninstall": _UNINSTALL,
}
"""Process → resource → what its permissions in the whole cluster are for."""
_OWN_NAMESPACE = {
    "webhook": {"configmaps": _RECOMMENDATIONS, "secrets": _SIGNING_KEY},
    "watchdog": {"configmaps": _RECOMMENDATIONS, "leases": _OWN_LEASE},
    "compactor": {
        "leases": _OWN_LEASE,
        "secrets": _SIGNING_KEY,
        "configmaps": "to read the pools, and to store the state of each pool",
        "poolstatuses": _COMPACTOR["poolstatuses"],
    },
    "recommender": {
        "leases": _OWN_LEASE,
        "configmaps": "to store the recommender's checkpoints and the recommendations",
    },
    METRICS_API: {"configmaps": "to read the rules of the metrics"},
    "uninstall": _UNINSTALL,
}
"""Process → resource → what its permissions in Trimtab's own namespace are for."""


def purpose_of(process: str, resource: str, *, group: str = "", name: str = "", own: bool) -> str:
    """Returns what a permission is for. `own`: whether the permission is for Trimtab's own namespace only."""
    if name in (CERTIFICATE_SECRET, f"{account_name(METRICS_API)}-tls"):
        return _CERTIFICATE
    if name == CONFIGURATION_NAME and process == "webhook":
        return "to write the caBundle with which API servers trust the webhook"
    if resource == "configmaps" and not own and process != "uninstall":
        return _AUTOSCALER
    purposes = _OWN_NAMESPACE[process] if own else _CLUSTER[process]
    return purposes.get(f"{resource}.{group}") or purposes.get(resource, "")
