"""Who may do what? An account per process; each may do what it does, and nothing else.

Nobody reads other namespaces' Secrets or creates one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trimtab.command.install.names import CONFIGURATION, PROCESSES, SECRET, Manifest, account, manifest
from trimtab.command.install.values import Values

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
_LEADING = Rule("coordination.k8s.io", ("leases",), ("get", "create", "update"))
_RECORDS = Rule("", ("configmaps",), ("list", "watch", "create", "patch"))
_OURS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")

CLUSTER: dict[str, tuple[Rule, ...]] = {
    "webhook": (
        *_FACTS,
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
        # Pools, and the autoscaler's own status; asked for by label and by name, which a right cannot say.
        Rule("", ("configmaps",), WATCH),
        Rule("apps", ("deployments", "replicasets", "statefulsets"), WATCH),
        Rule("batch", ("jobs",), WATCH),
        Rule("policy", ("poddisruptionbudgets",), WATCH),
        Rule("storage.k8s.io", ("csinodes",), WATCH),
        *_READMISSION,
        Rule("", ("pods/eviction",), ("create",)),
        # For a moment one replica more, where a pool asks for it.
        Rule("apps", ("deployments/scale",), ("get", "patch")),
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
        # Our own to nothing, and a second replica of ours back.
        Rule("apps", ("deployments/scale",), ("get", "patch")),
    ),
}
"""Granted in the whole cluster. `uninstall` is no process: it is Helm's hook, there for a minute."""

OWN: dict[str, tuple[Rule, ...]] = {
    "webhook": (_RECOMMENDATIONS, Rule("", ("secrets",), ("get", "update"), (SECRET,), keeps_pair=True)),
    "watchdog": (_RECOMMENDATIONS, _LEADING),
    "compactor": (_LEADING, _RECORDS),
    "recommender": (_LEADING, Rule("", ("configmaps",), ("list", "create", "patch", "delete"))),
    "uninstall": (
        Rule("", ("pods",), ("list",)),
        Rule("coordination.k8s.io", ("leases",), ("delete",), tuple(account(process) for process in PROCESSES[1:])),
        Rule("", ("configmaps",), ("list", "delete")),
    ),
}
"""Granted in our own namespace."""


def accounts(values: Values) -> Iterator[Manifest]:
    """Accounts, then roles, then who has them."""
    for process in PROCESSES:
        yield manifest("v1", "ServiceAccount", account(process), values, component=process)
    for process in PROCESSES:
        yield from granted(process, values)


def granted(process: str, values: Values) -> Iterator[Manifest]:
    """Its roles, and that its account has them."""
    name = account(process)
    yield manifest(_RBAC, "ClusterRole", name, component=process, rules=_plain(CLUSTER[process], values))
    yield _binding("ClusterRole", name, process, values)
    yield manifest(_RBAC, "Role", name, values, component=process, rules=_plain(OWN[process], values))
    yield _binding("Role", name, process, values)


def held(rules: Iterable[Rule], *, cert_manager: bool) -> tuple[Rule, ...]:
    """Of these rules those that an account is given: with cert-manager none by which the pair is kept."""
    return tuple(rule for rule in rules if not (cert_manager and rule.keeps_pair))


def _plain(rules: Iterable[Rule], values: Values) -> list[Manifest]:
    return [rule.plain() for rule in held(rules, cert_manager=values.cert_manager)]


def _binding(kind: str, name: str, process: str, values: Values) -> Manifest:
    subject = {"kind": "ServiceAccount", "name": name, "namespace": values.namespace}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    inside = values if kind == "Role" else None
    return manifest(_RBAC, f"{kind}Binding", name, inside, component=process, roleRef=ref, subjects=[subject])
