"""What was read of a cluster, before anybody judges it.

Whatever could not be looked at is `Unreadable` with the reason; None is what is not there.

API objects as plain values → what `seen` holds of them. Whatever is missing in them has the API's own default.

What must the processes' accounts be allowed? Exactly what `trimtab install` grants them, right by right.
"""

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeAlias, TypeVar

import certs
from trimtab.cli.install.admission_policies import NAMESPACE_NAME
from trimtab.cli.install.rbac import CLUSTER, OWN, SCALERS, SCALING, Rule, held
from trimtab.cluster.cluster_autoscaler import NAME as AUTOSCALER_STATUS
from trimtab.cluster.cluster_autoscaler import Autoscaler, flags_of
from trimtab.cluster.pool_config import PoolReading
from trimtab.cluster.reason import Unreadable
from trimtab.compaction.drain.annotation import DrainAnnotations
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.policy import vpa_webhook
from trimtab.policy.status import HARM_BRAKE, LOADED
from webhook import cert_manager

T = TypeVar("T")
Read: TypeAlias = T | Unreadable
"""Read, or why not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunResult:
    """How the API server answered to something that was not to be stored."""

    status: int
    message: str = ""
    """Why it was refused; empty where it was not."""
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    """From asking to the answer."""

    @property
    def lacks_right(self) -> bool:
        """Was it refused to whoever asked, before any webhook was called?"""
        return self.status in (401, 403) and " cannot " in self.message and "denied the request" not in self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentState:
    """A Deployment of ours."""

    wanted: int
    ready: int
    settings: Mapping[str, str] = field(default_factory=dict)
    """The environment of its container, as far as it stands there as text."""

    @property
    def scale_namespaces(self) -> frozenset[str]:
        """Where the compactor is told that it may scale Deployments."""
        return frozenset(filter(None, self.settings.get("TRIMTAB_COMPACTOR_SCALE_NAMESPACES", "").split(":")))


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookState:
    """One webhook of a configuration."""

    name: str
    place: str
    """The path it is called at."""
    service: tuple[str, str] | None = None
    """(namespace, name); None where it is called by a URL."""
    bundle: bytes = b""
    fails: bool = True
    """failurePolicy: Fail."""
    timeout: int = 10
    again: bool = False
    """reinvocationPolicy: IfNeeded."""
    creates_pods: bool = False
    """Is it called for pods that are created?"""
    spares: frozenset[str] = frozenset()
    """Namespaces that its selector leaves out by name."""
    namespaces: frozenset[str] | None = None
    """Namespaces that its selector names as the only ones; None where it names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookConfigurationState:
    """A webhook configuration."""

    name: str
    hooks: tuple[WebhookState, ...] = ()
    injected: bool = False
    """cert-manager keeps its caBundle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountPolicy:
    """A ValidatingAdmissionPolicy that is to hold an account of ours to its work."""

    name: str
    process: str
    """Whose account it holds."""
    is_there: bool = True
    is_bound: bool = True
    """By a binding that denies."""
    is_ours: bool = True
    """It says what `trimtab install` of this version would say, and its binding spares nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseState:
    holder: str
    renewed: datetime | None
    lasts: int
    """Seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyState:
    """A PodPolicy, by its status."""

    name: str
    mode: str
    generation: int
    observed: int
    """The generation its status is about; 0 while it has none."""
    broken: str = ""
    """Why the document makes no sense."""
    braked: str = ""
    """Why it was put to warn."""
    last_error: str = ""
    required_class: str = ""
    """The RuntimeClass that it requires of pods; empty where it requires none, or changes no pod."""
    is_class_missing: bool = False
    """Does the cluster lack that class, so that the pods are denied?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerState:
    """What is known of the cluster autoscaler."""

    told: Read[Autoscaler] | None
    """By its status; None where it writes none."""
    flags: Mapping[str, str] | None = None
    """Of its Deployment; None where no such Deployment can be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstafetteState:
    """What there is of an estafette node-compactor."""

    running: tuple[str, ...]
    """Its Deployments that want replicas, in words."""
    stranded: tuple[str, ...]
    """Nodes that it left cordoned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vpa:
    installed: bool
    acts: bool
    """Can its own webhook change pods?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSourceState:
    """Where usage comes from."""

    name: str
    status: int
    """HTTP."""
    said: str = ""
    empty: bool = False
    """It answers, and knows of no pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceState:
    """Our namespace."""

    paused: str
    """How the switch is set, in words; empty where nothing is paused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrdState:
    established: bool
    served: frozenset[str]
    """Versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureState:
    """What the compactor signs: notes on nodes, and the state of each pool. Of the webhook, whether it can sign."""

    webhook_keys: Read[bool | None]
    """Does the webhook's Secret hold a key? None: there is no Secret."""
    keys: Read[bool | None]
    """The same of the compactor's."""
    notes: Read[DrainAnnotations]
    """Without keys none is authentic."""
    states: Read[Mapping[str, PoolState | Unreadable]]
    """Pool → what is remembered of it; Unreadable, too, where that is not authentic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedCluster:
    """One look at a cluster."""

    namespace: str
    """Ours."""
    asked_in: str
    """Where pods were asked for that are not stored."""
    opted_out: Read[bool]
    """Does that namespace keep its pods from us?"""
    here: datetime
    """The time where we are, when the API server was asked for its own."""
    there: Read[datetime]
    version: Read[tuple[int, int]]
    home: Read[NamespaceState | None]
    crd: Read[CrdState | None]
    processes: Mapping[str, Read[DeploymentState | None]]
    secret: Read[certs.CertificateFiles | None]
    """The pair; None where the Secret is not there or holds none."""
    signed: Read[SignatureState]
    """By the compactor."""
    mutating: Read[tuple[WebhookConfigurationState, ...]]
    """All of the cluster, in the order in which the API server calls them."""
    validating: Read[WebhookConfigurationState | None]
    """Ours."""
    pod: Read[DryRunResult]
    """A pod that asks whether we are there."""
    document: Read[DryRunResult]
    """A PodPolicy that we refuse."""
    runtime_class: Read[DryRunResult]
    """A pod of a RuntimeClass that there is not, kept from us."""
    rights: Mapping[str, Read[tuple[str, ...]]]
    """Process → what its account lacks, in words."""
    account_policies: Read[tuple[AccountPolicy, ...] | None]
    """Those that an installation brings; None: this API server knows no such kind."""
    scaler: Read[AutoscalerState]
    estafette: Read[EstafetteState]
    source: Read[UsageSourceState]
    vpa: Read[Vpa]
    leases: Mapping[str, Read[LeaseState | None]]
    """Process → its Lease."""
    policies: Read[tuple[PolicyState, ...]]
    pools: Read[PoolReading]


Plain = Mapping[str, Any]
COMPONENT = "app.kubernetes.io/component"
_SPARING = ("namespaceSelector", "objectSelector", "excludeResourceRules")
"""What leaves objects out of an admission policy; none of ours says it."""


def process(found: Plain) -> DeploymentState:
    spec, status = found.get("spec") or {}, found.get("status") or {}
    variables = [v for c in _containers(found) for v in c.get("env") or ()]
    return DeploymentState(
        wanted=spec.get("replicas", 1),
        ready=status.get("readyReplicas", 0),
        settings={v["name"]: v.get("value", "") for v in variables},
    )


def autoscaler_flags(found: Iterable[Plain]) -> dict[str, str] | None:
    """Of the first Deployment that runs a cluster autoscaler; None where none does."""
    for deployment in found:
        for container in _containers(deployment):
            words = [*(container.get("command") or ()), *(container.get("args") or ())]
            if "cluster-autoscaler" in " ".join([container.get("image", ""), *words[:1]]):
                return flags_of(word for part in words for word in shlex.split(part))
    return None


def _containers(found: Plain) -> list[Plain]:
    template = (found.get("spec") or {}).get("template") or {}
    return list((template.get("spec") or {}).get("containers") or ())


def configuration(found: Plain) -> WebhookConfigurationState:
    bundles = cert_manager.ca_bundles(found)
    hooks = tuple(_hook(each, bundle) for each, bundle in zip(found.get("webhooks") or (), bundles, strict=True))
    return WebhookConfigurationState(
        name=found["metadata"]["name"], hooks=hooks, injected=cert_manager.left_alone(found)
    )


def _hook(found: Plain, bundle: bytes) -> WebhookState:
    service = (found.get("clientConfig") or {}).get("service")
    return WebhookState(
        name=found["name"],
        place=(service or {}).get("path", ""),
        service=(service["namespace"], service["name"]) if service else None,
        bundle=bundle,
        fails=found.get("failurePolicy", "Fail") == "Fail",
        timeout=found.get("timeoutSeconds", 10),
        again=found.get("reinvocationPolicy", "Never") == "IfNeeded",
        creates_pods=any(map(_creates_pods, found.get("rules") or ())),
        spares=frozenset(_spared(found.get("namespaceSelector") or {})),
        namespaces=_named(found.get("namespaceSelector") or {}),
    )


def vpa(found: WebhookConfigurationState) -> tuple[vpa_webhook.WebhookTarget, ...]:
    """The VPA's webhooks in it, nearly always none. What is called by a URL needs no caBundle."""
    return tuple(
        vpa_webhook.WebhookTarget(hook.service, hook.service is None or bool(hook.bundle))
        for hook in found.hooks
        if hook.name == vpa_webhook.NAME
    )


def _creates_pods(rule: Plain) -> bool:
    return bool(
        {"", "*"} & set(rule.get("apiGroups") or ())
        and {"pods", "*", "*/*"} & set(rule.get("resources") or ())
        and {"CREATE", "*"} & set(rule.get("operations") or ())
    )


def _spared(selector: Plain) -> Iterable[str]:
    for term in selector.get("matchExpressions") or ():
        if (term["key"], term["operator"]) == (NAMESPACE_NAME, "NotIn"):
            yield from term.get("values") or ()


def _named(selector: Plain) -> frozenset[str] | None:
    """The namespaces that a selector names as the only ones; None where it names none."""
    terms = selector.get("matchExpressions") or ()
    named = [term for term in terms if (term["key"], term["operator"]) == (NAMESPACE_NAME, "In")]
    return frozenset(named[0].get("values") or ()) if named else None


def crd(found: Plain) -> CrdState:
    conditions = (found.get("status") or {}).get("conditions") or ()
    return CrdState(
        established=any(c["type"] == "Established" and c["status"] == "True" for c in conditions),
        served=frozenset(v["name"] for v in found["spec"]["versions"] if v.get("served")),
    )


def lease(found: Plain) -> LeaseState:
    spec = found.get("spec") or {}
    renewed = spec.get("renewTime")
    return LeaseState(
        holder=spec.get("holderIdentity") or "",
        renewed=datetime.fromisoformat(renewed) if renewed else None,
        lasts=spec.get("leaseDurationSeconds") or 0,
    )


def account_policies(wanted: Iterable[Plain], there: Mapping[tuple[str, str], Plain]) -> Iterator[AccountPolicy]:
    """What became of each policy that an installation renders; `there`: by kind and name, as the server stores them."""
    rendered = {(each["kind"], each["metadata"]["name"]): each for each in wanted}
    for (kind, name), policy in rendered.items():
        if kind != "ValidatingAdmissionPolicy":
            continue
        bound = (f"{kind}Binding", name)
        found, binding = there.get((kind, name)), there.get(bound)
        spec = (binding or {}).get("spec") or {}
        yield AccountPolicy(
            name=name,
            process=policy["metadata"]["labels"][COMPONENT],
            is_there=found is not None,
            is_bound=spec.get("policyName") == name and "Deny" in (spec.get("validationActions") or ()),
            is_ours=_says(found or {}, policy["spec"]) and "matchResources" not in spec and "paramRef" not in spec,
        )


def _says(found: Plain, wanted: Plain) -> bool:
    """Does it say all of this, and spare nobody? What the server adds by itself does not count."""
    said = found.get("spec") or {}
    spares = any((said.get("matchConstraints") or {}).get(name) for name in _SPARING)
    return not spares and _has(said, wanted)


def _has(said: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        return isinstance(said, Mapping) and all(_has(said.get(name), value) for name, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(said, list) and len(said) == len(wanted) and all(map(_has, said, wanted))
    return bool(said == wanted)


def standing(found: Plain) -> PolicyState:
    meta, status, spec = found["metadata"], found.get("status") or {}, found.get("spec") or {}
    chosen = (spec.get("actions") or {}).get("runtimeClass") or {}
    acts = spec.get("mode", "apply") == "apply" and spec.get("enabled", True)
    said = {c["type"]: c for c in status.get("conditions") or ()}
    loaded, brake = said.get(LOADED, {}), said.get(HARM_BRAKE, {})
    return PolicyState(
        name=meta["name"],
        mode=spec.get("mode", "apply"),
        generation=meta.get("generation", 0),
        observed=status.get("observedGeneration", 0),
        broken=(loaded.get("message") or status.get("lastError", "")) if loaded.get("status") == "False" else "",
        braked=brake.get("message", "") if brake.get("status") == "True" else "",
        last_error=status.get("lastError", ""),
        required_class=chosen.get("name", "") if acts and chosen.get("required") else "",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """One verb on one resource."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    name: str = ""
    namespace: str = ""
    """Empty is the whole cluster."""

    elsewhere: bool = False
    """The namespace is not our own: it is told with the right."""

    def __str__(self) -> str:
        what = "/".join(part for part in (self.resource, self.subresource) if part)
        which = f" {self.name}" if self.name else ""
        where = f" in {self.namespace}" if self.elsewhere else ""
        return f"{self.verb} {what}{f'.{self.group}' if self.group else ''}{which}{where}"

    def review(self, user: str, namespace: str) -> dict[str, Any]:
        """The question whether a service account of this namespace has it."""
        attributes = {
            "verb": self.verb, "group": self.group, "resource": self.resource, "subresource": self.subresource,
            "name": self.name, "namespace": self.namespace,
        }  # fmt: skip
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
        spec = {
            "user": f"system:serviceaccount:{namespace}:{user}", "groups": groups,
            "resourceAttributes": {name: value for name, value in attributes.items() if value},
        }  # fmt: skip
        return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}


def needed(
    process: str, namespace: str, *, cert_manager: bool, scale_namespaces: Collection[str] = (),
    autoscaler_status: str = AUTOSCALER_STATUS,
) -> tuple[Permission, ...]:  # fmt: skip
    """By the process's account, where cert-manager keeps the pair and the caBundles, or where we do; where it may scale
    Deployments of these namespaces, and is told that the autoscaler's status has this name.
    """
    places = ((CLUSTER[process], ""), (OWN[process], namespace))
    rules = ((rule, place) for granted, place in places for rule in held(granted, cert_manager=cert_manager))
    found = dict.fromkeys(right for rule, place in rules for right in _of(rule, place))
    scaling = (right for place in sorted(scale_namespaces) for rule in SCALING for right in _of(rule, place))
    scales = [replace(right, elsewhere=True) for right in scaling] if process in SCALERS else []
    return tuple(
        replace(right, name=autoscaler_status) if right.name == AUTOSCALER_STATUS else right
        for right in (*found, *scales)
    )


def _of(rule: Rule, namespace: str) -> Iterator[Permission]:
    for resource in rule.resources:
        kind, _, sub = resource.partition("/")
        for verb in rule.verbs:
            for name in rule.names or ("",):
                yield Permission(
                    verb=verb, group=rule.group, resource=kind, subresource=sub, name=name, namespace=namespace
                )
