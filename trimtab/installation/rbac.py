"""The service accounts of the processes, each with exactly the permissions that its work needs.

No account may read Secrets of other namespaces, or create Secrets. `CONDITIONAL_PERMISSIONS` lists the permissions that
a process uses only under a condition; all others are used from the first minute.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from trimtab.cluster.cluster_autoscaler import STATUS_NAME as AUTOSCALER_STATUS
from trimtab.cluster.cluster_autoscaler import split_status_names
from trimtab.installation.names import (
    CERTIFICATE_SECRET,
    COMPACTOR_SIGNING,
    CONFIGURATION_NAME,
    METRICS_API,
    PROCESSES,
    WEBHOOK_SIGNING,
    InstallValues,
    Manifest,
    account_name,
    build_manifest,
)
from trimtab.metricsapi.api_request import API_SERVICE_NAME

READ = ("get", "list", "watch")
WATCH = ("list", "watch")
_RBAC = "rbac.authorization.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Rule:
    """Verbs on resources of one API group, restricted to the objects in `names` if there are any."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    is_for_certificate: bool = False
    """Whether the rule is only for the certificate's Secret and the caBundles. If cert-manager writes them, the process
    does not need the rule."""

    def to_manifest(self) -> Manifest:
        """Returns the rule in the form of a Role."""
        rule: Manifest = {"apiGroups": [self.group], "resources": list(self.resources), "verbs": list(self.verbs)}
        return {**rule, "resourceNames": list(self.names)} if self.names else rule


def _lease_rule(process: str) -> Rule:
    """Returns the rule for the process's own Lease.

    The name restricts `create`, too: a Lease is created by PUT, whose request contains the name. With POST the name
    would be empty.
    """
    return Rule("coordination.k8s.io", ("leases",), ("get", "create", "update"), (account_name(process),))


_FACTS = (
    Rule("", ("namespaces", "nodes", "limitranges", "resourcequotas", "replicationcontrollers"), WATCH),
    Rule("apps", ("deployments", "replicasets", "statefulsets", "daemonsets"), WATCH),
    Rule("batch", ("jobs", "cronjobs"), WATCH),
    Rule("autoscaling", ("horizontalpodautoscalers",), WATCH),
    Rule("autoscaling.k8s.io", ("verticalpodautoscalers",), WATCH),
    Rule("node.k8s.io", ("runtimeclasses",), WATCH),
    Rule("scheduling.k8s.io", ("priorityclasses",), WATCH),
    Rule("trimtab.dev", ("podpolicies",), WATCH),
    Rule("admissionregistration.k8s.io", ("mutatingwebhookconfigurations",), WATCH),
    Rule("discovery.k8s.io", ("endpointslices",), WATCH),
    Rule("coordination.k8s.io", ("leases",), WATCH),
)
"""The rules for the objects that decisions about a pod depend on.

Webhook configurations and EndpointSlices show whether the VPA's own webhook can act. Leases show whether the scheduler
that a policy sets for pods is running. The rules are not restricted to a namespace, because a policy may name any
namespace.
"""

_READMISSION = (
    Rule("", ("limitranges", "resourcequotas"), WATCH),
    Rule("apps", ("daemonsets",), WATCH),
    Rule("batch", ("cronjobs",), WATCH),
    *(
        rule
        for rule in _FACTS
        if rule.group in ("autoscaling", "autoscaling.k8s.io", "node.k8s.io", "scheduling.k8s.io", "trimtab.dev")
    ),
)
"""The rules for the objects that determine the requests of a pod that replaces an evicted pod. Rules that a plan needs
anyway are not repeated."""

_RECOMMENDATIONS = Rule("", ("configmaps",), WATCH)
_POOL_STATUSES = Rule("trimtab.dev", ("poolstatuses",), ("list", "create", "patch", "delete"))
_EVENTS = Rule("events.k8s.io", ("events",), ("get", "create", "patch"))
_RECORDS = Rule("", ("configmaps",), ("list", "watch", "create", "patch"))
_AUTOSCALER = Rule("", ("configmaps",), WATCH, (AUTOSCALER_STATUS,))
"""The permission to watch the autoscaler's status ConfigMap in any namespace. The ConfigMap's name is replaced by
`InstallValues.autoscaler_status`."""
_WEBHOOK_KEYS = Rule("", ("secrets",), ("get", "update"), (WEBHOOK_SIGNING,))
_COMPACTOR_KEYS = Rule("", ("secrets",), ("get", "update"), (COMPACTOR_SIGNING,))
_WEBHOOK_CONFIGURATIONS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")

CLUSTER_RULES: dict[str, tuple[Rule, ...]] = {
    "webhook": (
        *_FACTS,
        _AUTOSCALER,
        Rule(
            "admissionregistration.k8s.io",
            _WEBHOOK_CONFIGURATIONS,
            ("get", "update"),
            (CONFIGURATION_NAME,),
            is_for_certificate=True,
        ),
    ),
    "watchdog": (
        *_FACTS,
        Rule("", ("pods",), WATCH),
        # The harm brake is in the status, too.
        Rule("trimtab.dev", ("podpolicies/status",), ("patch",)),
        _EVENTS,
    ),
    "compactor": (
        Rule("", ("pods",), READ),
        Rule("", ("nodes",), (*WATCH, "patch")),
        Rule("", ("namespaces", "persistentvolumes", "persistentvolumeclaims", "replicationcontrollers"), WATCH),
        _AUTOSCALER,
        Rule("apps", ("deployments", "replicasets", "statefulsets"), WATCH),
        Rule("batch", ("jobs",), WATCH),
        Rule("policy", ("poddisruptionbudgets",), WATCH),
        Rule("storage.k8s.io", ("csinodes", "csidrivers", "storageclasses"), WATCH),
        # CapacityBuffers reserve capacity for pods of a PodTemplate; the CRD is optional.
        Rule("autoscaling.x-k8s.io", ("capacitybuffers",), WATCH),
        Rule("", ("podtemplates",), WATCH),
        Rule("resource.k8s.io", ("resourceclaims", "resourceslices", "deviceclasses"), WATCH),
        *_READMISSION,
        # What containers use now: it counts for pods without requests, and memory shrinks to it, with headroom.
        Rule("metrics.k8s.io", ("pods",), ("list",)),
        Rule("", ("pods/eviction",), ("create",)),
        _EVENTS,
    ),
    "recommender": (
        # Pods show their owners and OOM kills.
        Rule("", ("pods", "replicationcontrollers"), WATCH),
        Rule("apps", ("deployments", "replicasets", "statefulsets", "daemonsets"), WATCH),
        Rule("batch", ("jobs", "cronjobs"), WATCH),
        Rule("metrics.k8s.io", ("pods",), ("list",)),
        Rule("autoscaling.k8s.io", ("verticalpodautoscalers", "verticalpodautoscalercheckpoints"), ("list",)),
    ),
    METRICS_API: (
        Rule("", ("pods",), WATCH),
        # Whether a user may read a metric. TokenReviews are not needed: API servers name the user.
        Rule("authorization.k8s.io", ("subjectaccessreviews",), ("create",)),
        Rule(
            "apiregistration.k8s.io", ("apiservices",), ("get", "update"), (API_SERVICE_NAME,), is_for_certificate=True
        ),
    ),
    "uninstall": (
        Rule("apiregistration.k8s.io", ("apiservices",), ("get", "delete"), (API_SERVICE_NAME,)),
        Rule("admissionregistration.k8s.io", _WEBHOOK_CONFIGURATIONS, ("delete",), (CONFIGURATION_NAME,)),
        Rule("", ("nodes",), ("list", "get", "patch")),
    ),
}
"""Process → the rules that are granted in the whole cluster. The key `uninstall` is for the Job of Helm's hook, which
runs for about a minute."""

NAMESPACE_RULES: dict[str, tuple[Rule, ...]] = {
    "webhook": (
        _RECOMMENDATIONS,
        _WEBHOOK_KEYS,
        Rule("", ("secrets",), ("get", "update"), (CERTIFICATE_SECRET,), is_for_certificate=True),
    ),
    "watchdog": (_RECOMMENDATIONS, _lease_rule("watchdog")),
    "compactor": (_lease_rule("compactor"), _RECORDS, _COMPACTOR_KEYS, _POOL_STATUSES),
    "recommender": (_lease_rule("recommender"), Rule("", ("configmaps",), ("list", "create", "patch", "delete"))),
    METRICS_API: (
        Rule("", ("configmaps",), ("get",), ("trimtab-metrics",)),
        Rule("", ("secrets",), ("get", "update"), (f"{account_name(METRICS_API)}-tls",), is_for_certificate=True),
    ),
    "uninstall": (
        Rule("", ("pods",), ("list",)),
        Rule("apps", ("deployments/scale",), ("patch",), tuple(account_name(process) for process in PROCESSES[1:])),
        # With the key the Job verifies annotations and states: it undoes only what is authentic.
        Rule("", ("secrets",), ("get",), (COMPACTOR_SIGNING,)),
        Rule(
            "coordination.k8s.io", ("leases",), ("delete",), tuple(account_name(process) for process in PROCESSES[1:])
        ),
        Rule("", ("configmaps",), ("list", "delete")),
        Rule("trimtab.dev", ("poolstatuses",), ("list", "delete")),
    ),
}
"""Process → the rules that are granted in Trimtab's own namespace."""


SCALING = (Rule("apps", ("deployments/scale",), ("get", "patch")),)
"""The rules that are granted in the namespaces in which Deployments may be scaled.

The compactor needs them to give a Deployment a second replica, and the uninstall Job needs them to remove that replica.
"""
SCALERS = ("compactor", "uninstall")


RESIZING = (Rule("", ("pods/resize",), ("patch",)),)
"""The rules that the compactor is granted in the whole cluster if the installation resizes running pods."""


def render_accounts(values: InstallValues) -> Iterator[Manifest]:
    """Yields the service accounts of all processes, then their roles and bindings."""
    for process in PROCESSES:
        yield build_manifest("v1", "ServiceAccount", account_name(process), values, component=process)
    for process in PROCESSES:
        yield from render_roles(process, values)


def render_roles(process: str, values: InstallValues) -> Iterator[Manifest]:
    """Yields the roles of the process and their bindings to its account."""
    name = account_name(process)
    yield build_manifest(
        _RBAC, "ClusterRole", name, component=process, rules=_render_rules(CLUSTER_RULES[process], values)
    )
    yield _render_binding("ClusterRole", name, process, values)
    yield build_manifest(
        _RBAC, "Role", name, values, component=process, rules=_render_rules(NAMESPACE_RULES[process], values)
    )
    yield _render_binding("Role", name, process, values)
    if process == "compactor" and values.resize:
        yield from render_resize_role(values)
    if process in SCALERS:
        for namespace in values.scale_namespaces:
            yield from render_scale_role(process, namespace, values)


def render_resize_role(values: InstallValues) -> Iterator[Manifest]:
    """Yields the role to resize running pods, and its binding to the compactor's account."""
    name, rules = f"{account_name('compactor')}-resize", [rule.to_manifest() for rule in RESIZING]
    yield build_manifest(_RBAC, "ClusterRole", name, component="compactor", rules=rules)
    yield _render_binding("ClusterRole", name, "compactor", values)


def render_scale_role(process: str, namespace: str, values: InstallValues) -> Iterator[Manifest]:
    """Yields the role to scale Deployments of one namespace, and its binding."""
    name, scale_values = f"{account_name(process)}-scale", replace(values, namespace=namespace)
    rules = [rule.to_manifest() for rule in SCALING]
    yield build_manifest(_RBAC, "Role", name, scale_values, component=process, rules=rules)
    binding = _render_binding("Role", name, process, values)
    yield {**binding, "metadata": {**binding["metadata"], "namespace": namespace}}


def granted_rules(rules: Iterable[Rule], *, cert_manager: bool) -> tuple[Rule, ...]:
    """Returns the rules that are granted; if cert-manager is used, rules for the certificate's Secret and the caBundles
    are left out."""
    return tuple(rule for rule in rules if not (cert_manager and rule.is_for_certificate))


def _render_rules(rules: Iterable[Rule], values: InstallValues) -> list[Manifest]:
    names = {AUTOSCALER_STATUS: split_status_names(values.autoscaler_status)}
    return [
        replace(rule, names=tuple(own for name in rule.names for own in names.get(name, (name,)))).to_manifest()
        for rule in granted_rules(rules, cert_manager=values.cert_manager)
    ]


def _render_binding(kind: str, name: str, process: str, values: InstallValues) -> Manifest:
    subject = {"kind": "ServiceAccount", "name": account_name(process), "namespace": values.namespace}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    namespaced_values = values if kind == "Role" else None
    return build_manifest(
        _RBAC, f"{kind}Binding", name, namespaced_values, component=process, roleRef=ref, subjects=[subject]
    )


_VPA = "the definition of VerticalPodAutoscaler is installed; until then a list request is answered with 404"
_BUFFERS = "the definition of CapacityBuffer is installed; until then a list request is answered with 404"
_VPA_CALLED = "the VPA's webhook is registered, and its endpoints show whether the webhook answers"
_SCHEDULER_NAMED = "a policy names a scheduler, and the scheduler's Lease shows whether it runs"
_EVENT_TO_REPORT = "the process reports an Event about an object"
_EARLIER_EVENT = "an Event of an earlier leader exists, and the count of the Event is increased"
_FIRST_OBJECT = (
    "the first object is written: server-side apply of an object that does not exist is also authorized as create"
)
_NO_LEASE = (
    "the process's Lease does not exist yet: a PUT of an object that does not exist is also authorized as create"
)

CONDITIONAL_PERMISSIONS: dict[tuple[str, str, str], str] = {
    ("webhook", "watch", "verticalpodautoscalers"): _VPA,
    ("webhook", "list", "endpointslices"): _VPA_CALLED,
    ("webhook", "watch", "endpointslices"): _VPA_CALLED,
    ("webhook", "list", "leases"): _SCHEDULER_NAMED,
    ("webhook", "watch", "leases"): _SCHEDULER_NAMED,
    ("watchdog", "watch", "verticalpodautoscalers"): _VPA,
    ("watchdog", "list", "endpointslices"): _VPA_CALLED,
    ("watchdog", "watch", "endpointslices"): _VPA_CALLED,
    ("watchdog", "list", "leases"): _SCHEDULER_NAMED,
    ("watchdog", "watch", "leases"): _SCHEDULER_NAMED,
    ("watchdog", "create", "leases"): _NO_LEASE,
    ("watchdog", "create", "events"): _EVENT_TO_REPORT,
    ("watchdog", "patch", "events"): _EVENT_TO_REPORT,
    ("watchdog", "get", "events"): _EARLIER_EVENT,
    ("compactor", "create", "leases"): _NO_LEASE,
    ("compactor", "watch", "verticalpodautoscalers"): _VPA,
    ("compactor", "watch", "capacitybuffers"): _BUFFERS,
    ("compactor", "create", "configmaps"): _FIRST_OBJECT,
    ("compactor", "patch", "poolstatuses"): "there is a pool with valid settings",
    ("compactor", "create", "poolstatuses"): _FIRST_OBJECT,
    ("compactor", "delete", "poolstatuses"): "a pool was deleted, or another client wrote a PoolStatus without a pool",
    ("uninstall", "delete", "poolstatuses"): "the compactor wrote a PoolStatus",
    ("compactor", "patch", "events"): "an earlier Event of the node or pool is repeated within an hour",
    ("compactor", "get", "events"): _EARLIER_EVENT,
    ("uninstall", "delete", "apiservices"): "the metrics API is installed",
    (METRICS_API, "update", "apiservices"): "the certificate has a new authority",
    (METRICS_API, "update", "secrets"): "a certificate is due for renewal",
    ("recommender", "create", "leases"): _NO_LEASE,
    ("recommender", "list", "verticalpodautoscalers"): _VPA,
    ("recommender", "list", "verticalpodautoscalercheckpoints"): _VPA,
    ("recommender", "list", "pods"): "the recommender collects usage itself, without a Prometheus",
    ("recommender", "create", "configmaps"): _FIRST_OBJECT,
    ("recommender", "patch", "configmaps"): "there is usage, so checkpoints and recommendations are written",
    ("recommender", "delete", "configmaps"): "workloads were deleted, and a shard of the recommender is empty",
}
"""(process, verb, resource) → the condition under which the process uses the permission. A test compares this table
with an API server's audit log."""
