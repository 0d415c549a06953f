"""The state of a cluster that the checks read, and its conversion from API objects.

A part that could not be read is `Unreadable` with the reason; a part that does not exist is None. A field that an API
object lacks has the API's own default.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias, TypeVar

import certs
from trimtab.cluster.autoscaler_processes import Processes, autoscaler_arguments
from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.pool_config import PoolReading
from trimtab.cluster.reason import Unreadable
from trimtab.compaction.drain.annotation import DrainAnnotations
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.diagnosis.autoscaling_state import AutoscalingState
from trimtab.diagnosis.lease_state import LeaseState
from trimtab.diagnosis.references import ReferencesState
from trimtab.diagnosis.vpa.state import Vpa as Vpa
from trimtab.diagnosis.vpa.state import VpaStatusState
from trimtab.inputs.compiled_policy_state import CompiledPolicyState
from trimtab.installation.names import CONFIGURATION_NAME
from trimtab.installation.processes.webhook import NAMESPACE_NAME
from trimtab.kube import certificate_rotation
from trimtab.policy import vpa_webhook
from trimtab.policy.status import HARM_BRAKE, LOADED, WARN, is_braked

T = TypeVar("T")
Read: TypeAlias = T | Unreadable
"""A value, or the reason why it cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunResult:
    """The API server's answer to the creation of an object as a dry run."""

    status: int
    message: str = ""
    """The reason of a refusal; empty if the object was admitted."""
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    """The seconds from the request to the response."""

    @property
    def lacks_permission(self) -> bool:
        """Whether authorization refused the request, before any webhook was called."""
        # Authorization answers "User … cannot …" (apiserver, responsewriters/errors.go), a webhook's refusal says
        # "denied the request" (apiserver, plugin/webhook/errors/statuserror.go).
        return self.status in (401, 403) and " cannot " in self.message and "denied the request" not in self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentState:
    """The state of one of Trimtab's Deployments."""

    replicas: int
    ready_replicas: int
    settings: Mapping[str, str] = field(default_factory=dict)
    """The container's environment variables: name → value. The value is empty if it comes from another source
    (`valueFrom`)."""

    @property
    def scale_namespaces(self) -> frozenset[str]:
        """The namespaces in which the compactor is configured to scale Deployments."""
        return frozenset(filter(None, self.settings.get("TRIMTAB_COMPACTOR_SCALE_NAMESPACES", "").split(":")))

    @property
    def writes_vpa_status(self) -> bool:
        """Whether the recommender is configured to write the status of VPAs."""
        return self.settings.get("TRIMTAB_RECOMMENDER_WRITE_VPA_STATUS", "").lower() in ("true", "1")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookState:
    """The state of one webhook in a configuration."""

    name: str
    place: str
    """The path of the webhook's URL."""
    service: tuple[str, str] | None = None
    """(namespace, name) of the Service, or None if the webhook has a URL instead."""
    ca_bundle: bytes = b""
    fails_closed: bool = True
    """Whether its failurePolicy is Fail, so that requests are refused if the webhook does not answer."""
    timeout_seconds: int = 10
    reinvoked: bool = False
    """Whether its reinvocationPolicy is IfNeeded, so that it is called again if a later webhook changes the object."""
    creates_pods: bool = False
    """Whether the API server calls it for pods that are created."""
    excluded_namespaces: frozenset[str] = frozenset()
    """The namespaces that its namespace selector excludes by name."""
    included_namespaces: frozenset[str] | None = None
    """The only namespaces that its namespace selector includes by name, or None if it includes none by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookConfigurationState:
    """The state of a webhook configuration."""

    name: str
    hooks: tuple[WebhookState, ...] = ()
    injected: bool = False
    """Whether cert-manager writes the caBundle of the configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountPolicy:
    """A ValidatingAdmissionPolicy that restricts an account of Trimtab to its work."""

    name: str
    process: str
    """The process whose account the policy restricts."""
    is_there: bool = True
    is_bound: bool = True
    """Whether a binding makes the policy deny requests."""
    is_ours: bool = True
    """Whether the policy equals the policy that this version of Trimtab installs, and its binding has no exception."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyState:
    """The state of a PodPolicy, by its spec and status."""

    name: str
    mode: str
    generation: int
    observed_generation: int
    """The generation of the policy that the status describes; 0 if the policy has no status."""
    invalid_reason: str = ""
    """The reason why the document is invalid; empty if it is valid."""
    brake_reason: str = ""
    """The reason why the watchdog changed the policy's mode to warn; empty if the watchdog did not change it."""
    last_error: str = ""
    required_class: str = ""
    """The RuntimeClass that pods must have by this policy; empty if it requires none, or changes no pod."""
    is_class_missing: bool = False
    """Whether the RuntimeClass `required_class` does not exist in the cluster, so that the pods are denied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerState:
    """The cluster autoscaler's status and flags."""

    status_report: Read[Autoscaler] | None
    """The content of the status ConfigMap, or None if there is no such ConfigMap."""
    processes: Processes = ()
    """The command line of each Deployment that runs an autoscaler, in the order of their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpanderMapState:
    """The content of the ConfigMap with the map of the autoscaler's priority expander."""

    data: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EstafetteState:
    """The Deployments and nodes of an estafette node-compactor."""

    running: tuple[str, ...]
    """The Deployments of estafette that have replicas, as text."""
    stranded: tuple[str, ...]
    """The nodes that estafette left cordoned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSourceState:
    """The answer of the recommender's source of usage."""

    name: str
    status: int
    """The HTTP status code."""
    message: str = ""
    empty: bool = False
    """Whether the answer contains no pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServiceState:
    """The state of an APIService of custom.metrics.k8s.io."""

    name: str
    service: str
    """NAMESPACE/NAME of the Service that serves this API; empty if the API server serves it itself."""
    is_available: bool
    message: str = ""
    """The API server's reason why this API is not available; empty if it is available."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsApiState:
    """The providers of custom metrics."""

    api_services: tuple[ApiServiceState, ...] = ()
    deployment: DeploymentState | None = None
    """The Deployment of `trimtab metrics-api`; None if it is not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceState:
    """The state of Trimtab's namespace."""

    paused: str
    """The value of the annotation that pauses Trimtab; empty if Trimtab is not paused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrdState:
    """The state of the CustomResourceDefinition of PodPolicy."""

    established: bool
    served: frozenset[str]
    """The versions of the kind that the API server serves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureState:
    """The signing keys, and what the compactor signs: the annotations of nodes, and the state of each pool."""

    webhook_keys: Read[bool | None]
    """Whether the webhook's Secret contains a key, or None if there is no Secret."""
    keys: Read[bool | None]
    """Whether the compactor's Secret contains a key, or None if there is no Secret."""
    annotations: Read[DrainAnnotations]
    """The drain annotations of nodes; without keys none counts as authentic."""
    states: Read[Mapping[str, PoolState | Unreadable]]
    """Pool → its state; Unreadable if it cannot be read or is not authentic."""
    renamed: Read[tuple[tuple[str, str], ...]] = ()
    """(node, key) for every taint and annotation on a node whose key is one that Trimtab used in earlier versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedCluster:
    """The state of a cluster at one time, as far as the checks need it."""

    namespace: str
    """Trimtab's namespace."""
    trial_namespace: str
    """The namespace in which pods were created as a dry run."""
    is_opted_out: Read[bool]
    """Whether the pods of `trial_namespace` opt out of the webhook."""
    local_time: datetime
    """This machine's time when the API server was asked for its own time."""
    server_time: Read[datetime]
    """The API server's time."""
    version: Read[tuple[int, int]]
    own_namespace: Read[NamespaceState | None]
    crd: Read[CrdState | None]
    pool_status_crd: Read[CrdState | None]
    drain_order_crd: Read[CrdState | None]
    processes: Mapping[str, Read[DeploymentState | None]]
    secret: Read[certs.CertificateFiles | None]
    """The webhook's certificate and key, or None if the Secret does not exist or contains none."""
    signatures: Read[SignatureState]
    mutating: Read[tuple[WebhookConfigurationState, ...]]
    """All mutating webhook configurations of the cluster, in the order in which the API server calls them."""
    validating: Read[WebhookConfigurationState | None]
    """Trimtab's validating webhook configuration, or None if it does not exist."""
    pod_trial: Read[DryRunResult]
    """The API server's answer to a pod to which the webhook responds with a warning."""
    policy_trial: Read[DryRunResult]
    """The API server's answer to a PodPolicy that the webhook denies."""
    runtime_class_trial: Read[DryRunResult]
    """The API server's answer to a pod whose RuntimeClass does not exist; the pod opts out of the webhook."""
    missing_permissions: Mapping[str, Read[tuple[str, ...]]]
    """Process → the permissions that its account lacks, as text."""
    account_policies: Read[tuple[AccountPolicy, ...] | None]
    """The ValidatingAdmissionPolicies that `trimtab install` renders, or None if this API server has no such kind."""
    autoscaler: Read[AutoscalerState]
    estafette: Read[EstafetteState]
    usage_source: Read[UsageSourceState]
    vpa: Read[Vpa]
    vpa_statuses: Read[tuple[VpaStatusState, ...]] = ()
    """The VPAs that name Trimtab among their recommenders."""
    leases: Mapping[str, Read[LeaseState | None]]
    """Process → its Lease, or None if there is no Lease."""
    policies: Read[tuple[PolicyState, ...]]
    pools: Read[PoolReading]
    metrics_api: Read[MetricsApiState] = field(default_factory=MetricsApiState)
    references: Read[ReferencesState] = field(default_factory=ReferencesState)
    expander_map: Read[ExpanderMapState | None] = None
    """The autoscaler's priority map, or None if there is none."""
    compiled_policies: Read[tuple[CompiledPolicyState, ...] | None] = ()
    """The compiled policies, or None if this API server has no MutatingAdmissionPolicies."""
    autoscaling: Read[AutoscalingState] = field(default_factory=AutoscalingState)
    validating_policies: Read[tuple[CompiledPolicyState, ...]] = ()
    """The compiled policies that warn about or deny pods without a required action."""

    @property
    def present(self) -> datetime:
        """The API server's time, or this machine's time if the API server's is not known.

        It is compared with the renewal times of Leases. Replicas write those by their own clocks, which are more likely
        to agree with the API server's clock than with this machine's."""
        return self.local_time if isinstance(self.server_time, Unreadable) else self.server_time

    @property
    def is_without_webhook(self) -> bool:
        """Whether only compiled policies change pods (`install --mode policies`).

        That is so if a compiled policy has a binding, and the cluster has no mutating webhook configuration of Trimtab.
        """
        compiled = () if isinstance(self.compiled_policies, Unreadable) else self.compiled_policies or ()
        if isinstance(self.mutating, Unreadable) or not any(policy.is_bound for policy in compiled):
            return False
        return all(configuration.name != CONFIGURATION_NAME for configuration in self.mutating)


Plain = Mapping[str, Any]
COMPONENT = "app.kubernetes.io/component"
_EXCLUDING_FIELDS = ("namespaceSelector", "objectSelector", "excludeResourceRules")
"""The fields by which an admission policy excludes objects; no policy of Trimtab has one."""


def decode_process(deployment: Plain) -> DeploymentState:
    spec, status = deployment.get("spec") or {}, deployment.get("status") or {}
    variables = [variable for container in _pod_containers(deployment) for variable in container.get("env") or ()]
    return DeploymentState(
        replicas=spec.get("replicas", 1),
        ready_replicas=status.get("readyReplicas", 0),
        settings={variable["name"]: variable.get("value", "") for variable in variables},
    )


def list_autoscaler_arguments(deployments: Iterable[Plain]) -> Iterator[tuple[str, ...]]:
    """Yields the arguments of each cluster autoscaler that the Deployments run."""
    for deployment in deployments:
        for container in _pod_containers(deployment):
            words = [*(container.get("command") or ()), *(container.get("args") or ())]
            if (arguments := autoscaler_arguments(container.get("image", ""), words)) is not None:
                yield arguments


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
    # The only namespaces that the selector includes by name, or None if it includes none by name.
    terms = (hook.get("namespaceSelector") or {}).get("matchExpressions") or ()
    inclusions = [term for term in terms if (term["key"], term["operator"]) == (NAMESPACE_NAME, "In")]
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
        included_namespaces=frozenset(inclusions[0].get("values") or ()) if inclusions else None,
    )


def find_vpa_targets(configuration: WebhookConfigurationState) -> tuple[vpa_webhook.WebhookTarget, ...]:
    """Returns the VPA's own webhooks in the configuration, each with whether the API server can trust it.

    Most configurations have none. A webhook with a URL needs no caBundle.
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
    """Returns whether the stored policy has all fields of the rendered one and excludes no object.

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
    mode = WARN if is_braked(document) else spec.get("mode", "apply")
    acts = mode == "apply" and spec.get("enabled", True)
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    loaded, harm_brake = conditions.get(LOADED, {}), conditions.get(HARM_BRAKE, {})
    return PolicyState(
        name=meta["name"],
        mode=mode,
        generation=meta.get("generation", 0),
        observed_generation=status.get("observedGeneration", 0),
        invalid_reason=(loaded.get("message") or status.get("lastError", ""))
        if loaded.get("status") == "False"
        else "",
        brake_reason=harm_brake.get("message", "") if harm_brake.get("status") == "True" else "",
        last_error=status.get("lastError", ""),
        required_class=runtime_class.get("name", "") if acts and runtime_class.get("required") else "",
    )
