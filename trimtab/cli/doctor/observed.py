"""The state of a cluster that the checks judge, and its conversion from API objects.

A part that could not be read is `Unreadable` with the reason; a part that does not exist is None. A field that an API
object lacks has the API's own default.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias, TypeVar

import certs
from trimtab.cli.doctor.autoscaling_state import AutoscalingState
from trimtab.cli.doctor.compiled_policy_state import CompiledPolicyState
from trimtab.cli.doctor.lease_state import LeaseState
from trimtab.cli.doctor.references import ReferencesState
from trimtab.cli.install.admission_policies import NAMESPACE_NAME
from trimtab.cli.install.names import CONFIGURATION_NAME
from trimtab.cluster.cluster_autoscaler import Autoscaler, parse_flags
from trimtab.cluster.pool_config import PoolReading
from trimtab.cluster.reason import Unreadable
from trimtab.compaction.drain.annotation import DrainAnnotations
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.kube import certificate_rotation
from trimtab.policy import vpa_webhook
from trimtab.policy.status import HARM_BRAKE, LOADED

T = TypeVar("T")
Read: TypeAlias = T | Unreadable
"""A value, or the reason why it cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunResult:
    """The API server's answer to an object that was created as a dry run."""

    status: int
    message: str = ""
    """The reason of a refusal; empty if the object was admitted."""
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    """From the request to the response."""

    @property
    def lacks_permission(self) -> bool:
        """Whether authorization refused the request, before any webhook was called."""
        # Authorization answers "User … cannot …" (apiserver, responsewriters/errors.go), a webhook's refusal says
        # "denied the request" (apiserver, plugin/webhook/errors/statuserror.go).
        return self.status in (401, 403) and " cannot " in self.message and "denied the request" not in self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentState:
    """A Deployment of Trimtab."""

    replicas: int
    ready_replicas: int
    settings: Mapping[str, str] = field(default_factory=dict)
    """The environment of its container; a variable from another source is empty."""

    @property
    def scale_namespaces(self) -> frozenset[str]:
        """The namespaces in which the compactor is configured to scale Deployments."""
        return frozenset(filter(None, self.settings.get("TRIMTAB_COMPACTOR_SCALE_NAMESPACES", "").split(":")))


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookState:
    """One webhook of a configuration."""

    name: str
    place: str
    """The path of its URL."""
    service: tuple[str, str] | None = None
    """(namespace, name), or None if the webhook has a URL instead."""
    ca_bundle: bytes = b""
    fails_closed: bool = True
    """failurePolicy: Fail."""
    timeout_seconds: int = 10
    reinvoked: bool = False
    """reinvocationPolicy: IfNeeded."""
    creates_pods: bool = False
    """Whether it is called for pods that are created."""
    excluded_namespaces: frozenset[str] = frozenset()
    """The namespaces that its selector excludes by name."""
    included_namespaces: frozenset[str] | None = None
    """The only namespaces that its selector includes by name, or None if it includes none by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookConfigurationState:
    """A webhook configuration."""

    name: str
    hooks: tuple[WebhookState, ...] = ()
    injected: bool = False
    """Whether cert-manager writes its caBundle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountPolicy:
    """A ValidatingAdmissionPolicy that restricts an account of Trimtab to its work."""

    name: str
    process: str
    """The process whose account it restricts."""
    is_there: bool = True
    is_bound: bool = True
    """Whether a binding of it denies requests."""
    is_ours: bool = True
    """Whether it equals the policy that this version installs, and its binding has no exception."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyState:
    """A PodPolicy, by its status."""

    name: str
    mode: str
    generation: int
    observed_generation: int
    """The generation that its status is about; 0 without a status."""
    invalid_reason: str = ""
    """The reason why the document is invalid; empty if it is valid."""
    brake_reason: str = ""
    """The reason why the watchdog set it to warn; empty if it did not."""
    last_error: str = ""
    required_class: str = ""
    """The RuntimeClass that it requires of pods; empty if it requires none, or changes no pod."""
    is_class_missing: bool = False
    """Whether the cluster lacks that class, so that the pods are denied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerState:
    """The cluster autoscaler's status and flags."""

    status_report: Read[Autoscaler] | None
    """None if there is no status ConfigMap."""
    flags: Mapping[str, str] | None = None
    """The flags of its Deployment, or None if there is no such Deployment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpanderMapState:
    """The ConfigMap with the map of the autoscaler's priority expander."""

    data: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EstafetteState:
    """The Deployments and nodes of an estafette node-compactor."""

    running: tuple[str, ...]
    """Its Deployments that have replicas, as text."""
    stranded: tuple[str, ...]
    """The nodes that it left cordoned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vpa:
    """The VerticalPodAutoscaler's installation."""

    installed: bool
    acts: bool
    """Whether its own webhook can change pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSourceState:
    """The answer of the source of usage."""

    name: str
    status: int
    """The HTTP status code."""
    message: str = ""
    empty: bool = False
    """Whether it answers without any pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServiceState:
    """An APIService of custom.metrics.k8s.io."""

    name: str
    service: str
    """NAMESPACE/NAME of the Service; empty without one."""
    is_available: bool
    message: str = ""
    """The API server's reason if it is not available."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsApiState:
    """The provider of custom metrics."""

    api_services: tuple[ApiServiceState, ...] = ()
    deployment: DeploymentState | None = None
    """The Deployment of `trimtab metrics-api`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceState:
    """Trimtab's namespace."""

    paused: str
    """The value of the pause switch, as text; empty if nothing is paused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrdState:
    """The CustomResourceDefinition of PodPolicy."""

    established: bool
    served: frozenset[str]
    """The versions that the API server serves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureState:
    """The signing keys, and what the compactor signs: annotations of nodes, and the state of each pool."""

    webhook_keys: Read[bool | None]
    """Whether the webhook's Secret holds a key, or None without a Secret."""
    keys: Read[bool | None]
    """Whether the compactor's Secret holds a key, or None without a Secret."""
    annotations: Read[DrainAnnotations]
    """The drain annotations of nodes; without keys none is authentic."""
    states: Read[Mapping[str, PoolState | Unreadable]]
    """The state of each pool; Unreadable, too, if it is not authentic."""
    renamed: Read[tuple[tuple[str, str], ...]] = ()
    """Node and key of every taint and annotation that Trimtab has renamed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedCluster:
    """The state of a cluster at one time."""

    namespace: str
    """Trimtab's namespace."""
    trial_namespace: str
    """The namespace in which pods were created as a dry run."""
    is_opted_out: Read[bool]
    """Whether that namespace opts its pods out."""
    local_time: datetime
    """The time by this machine's clock when the API server was asked for its own."""
    server_time: Read[datetime]
    """The API server's time."""
    version: Read[tuple[int, int]]
    own_namespace: Read[NamespaceState | None]
    crd: Read[CrdState | None]
    pool_status_crd: Read[CrdState | None]
    processes: Mapping[str, Read[DeploymentState | None]]
    secret: Read[certs.CertificateFiles | None]
    """The webhook's certificate and key, or None if the Secret does not exist or holds none."""
    signatures: Read[SignatureState]
    mutating: Read[tuple[WebhookConfigurationState, ...]]
    """All configurations of the cluster, in the order in which the API server calls them."""
    validating: Read[WebhookConfigurationState | None]
    """Trimtab's configuration."""
    pod_trial: Read[DryRunResult]
    """A pod that the webhook answers with a warning."""
    policy_trial: Read[DryRunResult]
    """A PodPolicy that the webhook denies."""
    runtime_class_trial: Read[DryRunResult]
    """A pod of a RuntimeClass that does not exist; the pod opts out of the webhook."""
    missing_permissions: Mapping[str, Read[tuple[str, ...]]]
    """Process → the permissions that its account lacks, as text."""
    account_policies: Read[tuple[AccountPolicy, ...] | None]
    """The ValidatingAdmissionPolicies that `trimtab install` renders, or None if this API server has no such kind."""
    autoscaler: Read[AutoscalerState]
    estafette: Read[EstafetteState]
    usage_source: Read[UsageSourceState]
    vpa: Read[Vpa]
    leases: Mapping[str, Read[LeaseState | None]]
    """Process → its Lease."""
    policies: Read[tuple[PolicyState, ...]]
    pools: Read[PoolReading]
    metrics_api: Read[MetricsApiState] = field(default_factory=MetricsApiState)
    references: Read[ReferencesState] = field(default_factory=ReferencesState)
    expander_map: Read[ExpanderMapState | None] = None
    """None if the autoscaler has no priority map."""
    compiled_policies: Read[tuple[CompiledPolicyState, ...] | None] = ()
    """None if this API server has no such kind."""
    autoscaling: Read[AutoscalingState] = field(default_factory=AutoscalingState)
    validating_policies: Read[tuple[CompiledPolicyState, ...]] = ()
    """The compiled policies that warn about or deny pods without a required action."""

    @property
    def present(self) -> datetime:
        """The API server's time, or this machine's if that is not known. Leases are compared with it: the clock of the
        replica that renewed one is closer to the API server's than to the one of this command."""
        return self.local_time if isinstance(self.server_time, Unreadable) else self.server_time

    @property
    def is_without_webhook(self) -> bool:
        """Whether pods are changed by compiled policies alone (`install --mode policies`): one is bound, and no
        webhook of Trimtab is registered for pods."""
        compiled = () if isinstance(self.compiled_policies, Unreadable) else self.compiled_policies or ()
        if isinstance(self.mutating, Unreadable) or not any(policy.is_bound for policy in compiled):
            return False
        return all(configuration.name != CONFIGURATION_NAME for configuration in self.mutating)


Plain = Mapping[str, Any]
COMPONENT = "app.kubernetes.io/component"
_EXCLUDING_FIELDS = ("namespaceSelector", "objectSelector", "excludeResourceRules")
"""The fields that exclude objects from an admission policy; no policy of Trimtab has one."""


def decode_process(deployment: Plain) -> DeploymentState:
    spec, status = deployment.get("spec") or {}, deployment.get("status") or {}
    variables = [variable for container in _pod_containers(deployment) for variable in container.get("env") or ()]
    return DeploymentState(
        replicas=spec.get("replicas", 1),
        ready_replicas=status.get("readyReplicas", 0),
        settings={variable["name"]: variable.get("value", "") for variable in variables},
    )


def find_autoscaler_flags(deployments: Iterable[Plain]) -> dict[str, str] | None:
    """Returns the flags of the first Deployment that runs a cluster autoscaler, or None if none does."""
    for deployment in deployments:
        for container in _pod_containers(deployment):
            arguments = [*(container.get("command") or ()), *(container.get("args") or ())]
            if "cluster-autoscaler" in " ".join([container.get("image", ""), *arguments[:1]]):
                return parse_flags(word for part in arguments for word in shlex.split(part))
    return None


def _pod_containers(deployment: Plain) -> list[Plain]:
    template = (deployment.get("spec") or {}).get("template") or {}
    return list((template.get("spec") or {}).get("containers") or ())


def decode_configuration(document: Plain) -> WebhookConfigurationState:
    bundles = certificate_rotation.ca_bundles(document)
    hooks = tuple(
        _webhook_state(hook, bundle) for hook, bundle in zip(document.get("webhooks") or (), bundles, strict=True)
    )
    return WebhookConfigurationState(
        name=document["metadata"]["name"], hooks=hooks, injected=certificate_rotation.is_managed_elsewhere(document)
    )


def _webhook_state(hook: Plain, bundle: bytes) -> WebhookState:
    service = (hook.get("clientConfig") or {}).get("service")
    return WebhookState(
        name=hook["name"],
        place=(service or {}).get("path", ""),
        service=(service["namespace"], service["name"]) if service else None,
        ca_bundle=bundle,
        fails_closed=hook.get("failurePolicy", "Fail") == "Fail",
        timeout_seconds=hook.get("timeoutSeconds", 10),
        reinvoked=hook.get("reinvocationPolicy", "Never") == "IfNeeded",
        creates_pods=any(map(_creates_pods, hook.get("rules") or ())),
        excluded_namespaces=frozenset(_excluded_namespaces(hook.get("namespaceSelector") or {})),
        included_namespaces=_included_namespaces(hook.get("namespaceSelector") or {}),
    )


def find_vpa_targets(configuration: WebhookConfigurationState) -> tuple[vpa_webhook.WebhookTarget, ...]:
    """Returns the VPA's webhooks in the configuration, mostly none, each with whether the API server can trust it.

    A webhook with a URL needs no caBundle.
    """
    return tuple(
        vpa_webhook.WebhookTarget(hook.service, hook.service is None or bool(hook.ca_bundle))
        for hook in configuration.hooks
        if hook.name == vpa_webhook.VPA_WEBHOOK_NAME
    )


def _creates_pods(rule: Plain) -> bool:
    return bool(
        {"", "*"} & set(rule.get("apiGroups") or ())
        and {"pods", "*", "*/*"} & set(rule.get("resources") or ())
        and {"CREATE", "*"} & set(rule.get("operations") or ())
    )


def _excluded_namespaces(selector: Plain) -> Iterable[str]:
    for term in selector.get("matchExpressions") or ():
        if (term["key"], term["operator"]) == (NAMESPACE_NAME, "NotIn"):
            yield from term.get("values") or ()


def _included_namespaces(selector: Plain) -> frozenset[str] | None:
    """Returns the only namespaces that a selector includes by name, or None if it includes none by name."""
    terms = selector.get("matchExpressions") or ()
    inclusions = [term for term in terms if (term["key"], term["operator"]) == (NAMESPACE_NAME, "In")]
    return frozenset(inclusions[0].get("values") or ()) if inclusions else None


def decode_crd(document: Plain) -> CrdState:
    conditions = (document.get("status") or {}).get("conditions") or ()
    return CrdState(
        established=any(each["type"] == "Established" and each["status"] == "True" for each in conditions),
        served=frozenset(version["name"] for version in document["spec"]["versions"] if version.get("served")),
    )


def decode_account_policies(
    rendered_documents: Iterable[Plain], stored: Mapping[tuple[str, str], Plain]
) -> Iterator[AccountPolicy]:
    """Yields the state of each policy that `trimtab install` renders.

    `stored` maps kind and name to the policies and bindings of the API server.
    """
    rendered = {(document["kind"], document["metadata"]["name"]): document for document in rendered_documents}
    for (kind, name), policy in rendered.items():
        if kind != "ValidatingAdmissionPolicy":
            continue
        binding_key = (f"{kind}Binding", name)
        stored_policy, binding = stored.get((kind, name)), stored.get(binding_key)
        spec = (binding or {}).get("spec") or {}
        yield AccountPolicy(
            name=name,
            process=policy["metadata"]["labels"][COMPONENT],
            is_there=stored_policy is not None,
            is_bound=spec.get("policyName") == name and "Deny" in (spec.get("validationActions") or ()),
            is_ours=_matches_rendered(stored_policy or {}, policy["spec"])
            and "matchResources" not in spec
            and "paramRef" not in spec,
        )


def _matches_rendered(stored: Plain, rendered: Plain) -> bool:
    """Returns whether the stored policy has all rendered fields and excludes no object.

    Fields that the API server adds by itself do not count.
    """
    spec = stored.get("spec") or {}
    excludes = any((spec.get("matchConstraints") or {}).get(name) for name in _EXCLUDING_FIELDS)
    return not excludes and _contains(spec, rendered)


def _contains(actual: Any, expected: Any) -> bool:
    if isinstance(expected, Mapping):
        return isinstance(actual, Mapping) and all(
            _contains(actual.get(name), value) for name, value in expected.items()
        )
    if isinstance(expected, list):
        return isinstance(actual, list) and len(actual) == len(expected) and all(map(_contains, actual, expected))
    return bool(actual == expected)


def decode_policy(document: Plain) -> PolicyState:
    """Returns the state of a PodPolicy by its spec and status."""
    meta, status, spec = document["metadata"], document.get("status") or {}, document.get("spec") or {}
    runtime_class = (spec.get("actions") or {}).get("runtimeClass") or {}
    acts = spec.get("mode", "apply") == "apply" and spec.get("enabled", True)
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    loaded, harm_brake = conditions.get(LOADED, {}), conditions.get(HARM_BRAKE, {})
    return PolicyState(
        name=meta["name"],
        mode=spec.get("mode", "apply"),
        generation=meta.get("generation", 0),
        observed_generation=status.get("observedGeneration", 0),
        invalid_reason=(loaded.get("message") or status.get("lastError", ""))
        if loaded.get("status") == "False"
        else "",
        brake_reason=harm_brake.get("message", "") if harm_brake.get("status") == "True" else "",
        last_error=status.get("lastError", ""),
        required_class=runtime_class.get("name", "") if acts and runtime_class.get("required") else "",
    )
