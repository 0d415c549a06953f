"""Who may do what? An account per process; each may do what it does, and nothing else.

Nobody reads other namespaces' Secrets or creates one.

Which rights are used only in need, and in which? All others are used from the first minute.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from trimtab.cli.install.names import (
    COMPACTOR_SIGNING,
    CONFIGURATION,
    PROCESSES,
    SECRET,
    WEBHOOK_SIGNING,
    InstallValues,
    Manifest,
    account,
    manifest,
)
from trimtab.cluster.cluster_autoscaler import NAME as AUTOSCALER_STATUS

READ = ("get", "list", "watch")
WATCH = ("list", "watch")
_RBAC = "rbac.authorization.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Rule:
    """These verbs on these resources of one group, by name where names are given."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    keeps_pair: bool = False
    """For the pair's Secret and the caBundles alone: with cert-manager neither is our business."""

    def plain(self) -> Manifest:
        found: Manifest = {"apiGroups": [self.group], "resources": list(self.resources), "verbs": list(self.verbs)}
        return {**found, "resourceNames": list(self.names)} if self.names else found


def _leading(process: str) -> Rule:
    """Its own Lease and no other. The name binds `create` too, because a Lease is created by PUT."""
    return Rule("coordination.k8s.io", ("leases",), ("get", "create", "update"), (account(process),))


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
)
"""What decisions about a pod rest on; the last two tell whether the VPA's own webhook is able to act."""

_READMISSION = (
    Rule("", ("limitranges", "resourcequotas"), WATCH),
    Rule("apps", ("daemonsets",), WATCH),
    Rule("batch", ("cronjobs",), WATCH),
    *(rule for rule in _FACTS if rule.group in (
        "autoscaling", "autoscaling.k8s.io", "node.k8s.io", "scheduling.k8s.io", "trimtab.dev",
    )),
)  # fmt: skip
"""What an evicted pod's successor would be given by policies: beside what a plan rests on anyway."""

_RECOMMENDATIONS = Rule("", ("configmaps",), WATCH)
_EVENTS = Rule("events.k8s.io", ("events",), ("get", "create", "patch"))
_RECORDS = Rule("", ("configmaps",), ("list", "watch", "create", "patch"))
_AUTOSCALER = Rule("", ("configmaps",), WATCH, (AUTOSCALER_STATUS,))
"""By its name, wherever the autoscaler runs: `InstallValues.autoscaler_status` says another one."""
_WEBHOOK_KEYS = Rule("", ("secrets",), ("get", "update"), (WEBHOOK_SIGNING,))
_COMPACTOR_KEYS = Rule("", ("secrets",), ("get", "update"), (COMPACTOR_SIGNING,))
_OURS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")

CLUSTER: dict[str, tuple[Rule, ...]] = {
    "webhook": (
        *_FACTS,
        _AUTOSCALER,
        Rule("admissionregistration.k8s.io", _OURS, ("get", "update"), (CONFIGURATION,), keeps_pair=True),
    ),
    "watchdog": (
        *_FACTS,
        Rule("", ("pods",), WATCH),
        # Of a policy its status, and the mode of one that harms: RBAC knows no fields.
        Rule("trimtab.dev", ("podpolicies", "podpolicies/status"), ("patch",)),
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
        Rule("storage.k8s.io", ("csinodes",), WATCH),
        # Room that the autoscaler keeps, and for which pods; the first is a kind that need not be installed.
        Rule("autoscaling.x-k8s.io", ("capacitybuffers",), WATCH),
        Rule("", ("podtemplates",), WATCH),
        Rule("resource.k8s.io", ("resourceclaims", "resourceslices", "deviceclasses"), WATCH),
        *_READMISSION,
        Rule("", ("pods/eviction",), ("create",)),
        _EVENTS,
    ),
    "recommender": (
        # Whose pods they are, and what was killed for want of memory.
        Rule("", ("pods", "replicationcontrollers"), WATCH),
        Rule("apps", ("deployments", "replicasets", "statefulsets", "daemonsets"), WATCH),
        Rule("batch", ("jobs", "cronjobs"), WATCH),
        Rule("metrics.k8s.io", ("pods",), ("list",)),
        Rule("autoscaling.k8s.io", ("verticalpodautoscalers", "verticalpodautoscalercheckpoints"), ("list",)),
    ),
    "uninstall": (
        Rule("admissionregistration.k8s.io", _OURS, ("delete",), (CONFIGURATION,)),
        Rule("", ("nodes",), ("list", "get", "patch")),
    ),
}
"""Granted in the whole cluster. `uninstall` is no process: it is Helm's hook, there for a minute."""

OWN: dict[str, tuple[Rule, ...]] = {
    "webhook": (
        _RECOMMENDATIONS,
        _WEBHOOK_KEYS,
        Rule("", ("secrets",), ("get", "update"), (SECRET,), keeps_pair=True),
    ),
    "watchdog": (_RECOMMENDATIONS, _leading("watchdog")),
    "compactor": (_leading("compactor"), _RECORDS, _COMPACTOR_KEYS),
    "recommender": (_leading("recommender"), Rule("", ("configmaps",), ("list", "create", "patch", "delete"))),
    "uninstall": (
        Rule("", ("pods",), ("list",)),
        Rule("apps", ("deployments/scale",), ("patch",), tuple(account(process) for process in PROCESSES[1:])),
        # Which notes and which state are authentic: nothing else is undone.
        Rule("", ("secrets",), ("get",), (COMPACTOR_SIGNING,)),
        Rule("coordination.k8s.io", ("leases",), ("delete",), tuple(account(process) for process in PROCESSES[1:])),
        Rule("", ("configmaps",), ("list", "delete")),
    ),
}
"""Granted in our own namespace."""


SCALING = (Rule("apps", ("deployments/scale",), ("get", "patch")),)
"""Granted in the namespaces that an installation names, to who gives a workload its second replica, and to who takes it
back at the end."""
SCALERS = ("compactor", "uninstall")


def accounts(values: InstallValues) -> Iterator[Manifest]:
    """Accounts, then roles, then who has them."""
    for process in PROCESSES:
        yield manifest("v1", "ServiceAccount", account(process), values, component=process)
    for process in PROCESSES:
        yield from granted(process, values)


def granted(process: str, values: InstallValues) -> Iterator[Manifest]:
    """Its roles, and that its account has them."""
    name = account(process)
    yield manifest(_RBAC, "ClusterRole", name, component=process, rules=_plain(CLUSTER[process], values))
    yield _binding("ClusterRole", name, process, values)
    yield manifest(_RBAC, "Role", name, values, component=process, rules=_plain(OWN[process], values))
    yield _binding("Role", name, process, values)
    if process in SCALERS:
        for namespace in values.scale_namespaces:
            yield from scaling(process, namespace, values)


def scaling(process: str, namespace: str, values: InstallValues) -> Iterator[Manifest]:
    """The right to scale Deployments of one namespace."""
    name, inside = f"{account(process)}-scale", replace(values, namespace=namespace)
    rules = [rule.plain() for rule in SCALING]
    yield manifest(_RBAC, "Role", name, inside, component=process, rules=rules)
    found = _binding("Role", name, process, values)
    yield {**found, "metadata": {**found["metadata"], "namespace": namespace}}


def held(rules: Iterable[Rule], *, cert_manager: bool) -> tuple[Rule, ...]:
    """Of these rules those that an account is given: with cert-manager none by which the pair is kept."""
    return tuple(rule for rule in rules if not (cert_manager and rule.keeps_pair))


def _plain(rules: Iterable[Rule], values: InstallValues) -> list[Manifest]:
    names = {AUTOSCALER_STATUS: values.autoscaler_status}
    return [
        replace(rule, names=tuple(names.get(name, name) for name in rule.names)).plain()
        for rule in held(rules, cert_manager=values.cert_manager)
    ]


def _binding(kind: str, name: str, process: str, values: InstallValues) -> Manifest:
    subject = {"kind": "ServiceAccount", "name": account(process), "namespace": values.namespace}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    inside = values if kind == "Role" else None
    return manifest(_RBAC, f"{kind}Binding", name, inside, component=process, roleRef=ref, subjects=[subject])


_VPA = "a VerticalPodAutoscaler's definition is installed; until then a list answers 404"
_BUFFERS = "the definition of CapacityBuffers is installed; until then a list answers 404"
_VPA_CALLED = "the VPA's webhook is registered: does anybody answer for it?"
_TOLD = "there is something to tell of an object"
_TOLD_BEFORE = "an Event stands that an earlier life of the process made: its count goes on"
_FIRST = "the first is written: server-side apply of what is not there yet is checked as create, too"
_NO_LEASE = "its Lease is not there yet: a PUT of what is not there is checked as create, too"

SELDOM: dict[tuple[str, str, str], str] = {
    ("webhook", "watch", "verticalpodautoscalers"): _VPA,
    ("webhook", "list", "endpointslices"): _VPA_CALLED,
    ("webhook", "watch", "endpointslices"): _VPA_CALLED,
    ("watchdog", "watch", "verticalpodautoscalers"): _VPA,
    ("watchdog", "list", "endpointslices"): _VPA_CALLED,
    ("watchdog", "watch", "endpointslices"): _VPA_CALLED,
    ("watchdog", "create", "leases"): _NO_LEASE,
    ("watchdog", "patch", "podpolicies"): "a policy harms pods: the brake puts it to `warn`",
    ("watchdog", "create", "events"): _TOLD,
    ("watchdog", "patch", "events"): _TOLD,
    ("watchdog", "get", "events"): _TOLD_BEFORE,
    ("compactor", "create", "leases"): _NO_LEASE,
    ("compactor", "watch", "verticalpodautoscalers"): _VPA,
    ("compactor", "watch", "capacitybuffers"): _BUFFERS,
    ("compactor", "create", "configmaps"): _FIRST,
    ("compactor", "patch", "events"): "the same happens to a node or pool again within an hour",
    ("compactor", "get", "events"): _TOLD_BEFORE,
    ("recommender", "create", "leases"): _NO_LEASE,
    ("recommender", "list", "verticalpodautoscalers"): _VPA,
    ("recommender", "list", "verticalpodautoscalercheckpoints"): _VPA,
    ("recommender", "list", "pods"): "usage is read moment by moment: there is no Prometheus",
    ("recommender", "create", "configmaps"): _FIRST,
    ("recommender", "patch", "configmaps"): "there is usage: checkpoints and recommendations",
    ("recommender", "delete", "configmaps"): "workloads went, and with them a shard",
}
"""(process, verb, resource) → when. A test holds it against what an API server's audit log says was used."""
