"""Reads the state of a cluster for `trimtab doctor`: objects, permissions, and answers to dry runs.

Dry runs create objects with `dryRun=All`: admission handles them, and nothing is stored. A part that cannot be read is
Unreadable with the reason; the other parts are still read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from trimtab.admission.handler import PROBE_ANNOTATION
from trimtab.cluster.autoscaler_processes import key_of_process
from trimtab.cluster.cluster_autoscaler import STATUS_NAME, UPDATED_ANNOTATION, Autoscaler
from trimtab.cluster.cluster_autoscaler import parse_status as read_autoscaler
from trimtab.cluster.pool_config import PoolReading
from trimtab.cluster.pool_labels import POOL_LABEL as POOL
from trimtab.cluster.processes import PROCESSES, account_name
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.several_autoscalers import join_autoscalers
from trimtab.diagnosis import observed
from trimtab.diagnosis.account_policies import expected_account_policies, has_injected_certificate
from trimtab.diagnosis.autoscaling_state import read_autoscaling
from trimtab.diagnosis.check_expander_map import decode_expander_map
from trimtab.diagnosis.check_metrics_api import read_metrics_api_state
from trimtab.diagnosis.lease_state import decode_lease
from trimtab.diagnosis.observed import (
    AccountPolicy,
    AutoscalerState,
    DeploymentState,
    DryRunResult,
    EstafetteState,
    MetricsApiState,
    NamespaceState,
    ObservedCluster,
    PolicyState,
    Read,
    UsageSourceState,
    WebhookConfigurationState,
)
from trimtab.diagnosis.permissions import missing_permissions, needed_permissions
from trimtab.diagnosis.process_states import find_metrics_api, find_recommender, is_metrics_api, is_webhook
from trimtab.diagnosis.references import read_references
from trimtab.diagnosis.vpa.state import Vpa, read_vpa, read_vpa_statuses
from trimtab.inputs.compiled_policy_state import read_compiled_policies
from trimtab.installation.names import CERTIFICATE_SECRET, CONFIGURATION_NAME, WORKERS
from trimtab.installation.names import PROCESSES as INSTALLED
from trimtab.kube import objects
from trimtab.kube.client import Client, Exchange
from trimtab.kube.errors import Unreachable, refusal_of_response
from trimtab.kube.listing import iter_pages
from trimtab.kube.objects import decode_as
from trimtab.kube.resources import LIST_SOURCES, collection_path, path_segment
from trimtab.machines.expander_map import MAP_NAME
from trimtab.policy.pod_context import DEFAULT_SETTINGS, OPT_OUT
from trimtab.policy.policy_kind import API_VERSION, KIND
from trimtab.runtime import clock
from trimtab.runtime.clock import elapsed_seconds

if TYPE_CHECKING:
    import certs


_MAX_CONCURRENT_REVIEWS = 8
_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
POD_METRICS_PATH = "/apis/metrics.k8s.io/v1beta1/pods"


class _ServerMessage(msgspec.Struct):
    """The message of a Status; empty if the body is no Status."""

    message: str = ""


@dataclass(frozen=True, slots=True)
class ClusterProbe:
    """Sends requests to the API server; every method raises any KubeFault."""

    client: Client

    def send_request(
        self, method: str, path: str, query: Any = None, body: Mapping[str, Any] | None = None
    ) -> Exchange:
        """Send one request and return the response, whatever its status."""
        deadline = self.client.deadlines.read
        return self.client.send_request(
            method, path, deadline=deadline, query=query, body=body, doing=f"{method} {path}"
        )

    def get_object(self, kind: str, name: str, namespace: str = "") -> dict[str, Any] | None:
        """Returns the object as a JSON value, or None if it does not exist."""
        return objects.get_plain(self.client, kind, name, namespace)

    def list_objects(self, kind: str, namespace: str = "") -> Iterator[dict[str, Any]]:
        """Yields all objects of the kind as JSON values, page by page."""
        place = replace(LIST_SOURCES[kind], namespace=namespace) if namespace else LIST_SOURCES[kind]
        for page in iter_pages(self.client, place):
            yield from (msgspec.json.decode(raw) for raw in page.items)

    def create_dry_run(self, document: Mapping[str, Any], namespace: str = "") -> DryRunResult:
        """Create the document as a dry run, and return the API server's answer."""
        # With dryRun=All the API server runs admission, webhooks included, and stores nothing (docs: "API Concepts").
        started_at = elapsed_seconds()
        path = collection_path(LIST_SOURCES[document["kind"]], namespace)
        response = self.send_request("POST", path, {"dryRun": "All"}, document)
        return DryRunResult(
            status=response.status,
            message=_server_message(response) if response.status >= 300 else "",
            warnings=response.warning_texts,
            seconds=elapsed_seconds() - started_at,
        )

    def review_access(self, reviews: Sequence[Mapping[str, Any]]) -> list[bool]:
        """Returns for each SubjectAccessReview whether the access is allowed."""
        with ThreadPoolExecutor(_MAX_CONCURRENT_REVIEWS) as pool:
            return list(pool.map(self._is_allowed, reviews))

    def _is_allowed(self, review: Mapping[str, Any]) -> bool:
        doing = "create subjectaccessreviews"
        status_review = decode_as(self.client.write("POST", _REVIEWS, review, doing=doing), dict[str, Any], doing)
        return bool((status_review.get("status") or {}).get("allowed"))

    def query_usage_source(self, prometheus: str) -> UsageSourceState:
        """Query the metrics API, or through the API server the Prometheus at this URL, and return the answer."""
        if not prometheus:
            response = self.send_request("GET", POD_METRICS_PATH, {"limit": 1})
            _raise_if_forbidden(response, "list pods.metrics.k8s.io")
            return UsageSourceState(
                name="metrics API", status=response.status, message=_server_message(response), empty=_is_empty(response)
            )
        response = self.send_request("GET", _proxy_path(prometheus), {"query": "vector(1)"})
        _raise_if_forbidden(response, f"reach {prometheus} through the API server (get services/proxy)")
        return UsageSourceState(name=prometheus, status=response.status, message=_server_message(response))


def _raise_if_forbidden(response: Exchange, doing: str) -> None:
    if response.status in (401, 403):
        raise refusal_of_response(doing, response.status, response.content)


def _proxy_path(url: str) -> str:
    """Returns the API server's proxy path to the Service of this URL. Raises Unreachable if the host is no Service."""
    parts = urlsplit(url)
    labels = (parts.hostname or "").split(".")
    # The names of a Service in the cluster's DNS: NAME.NAMESPACE, with .svc, or with .svc.cluster.local.
    if len(labels) < 2 or labels[2:] not in ([], ["svc"], ["svc", "cluster", "local"]):
        raise Unreachable(f"query {url}: it is not a Service of this cluster, so it cannot be reached from here")
    name, namespace = map(path_segment, labels[:2])
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    # The proxy subresource takes [SCHEME:]NAME:PORT (docs: "Access Services Running on Clusters").
    service = f"https:{name}:{port}" if secure else f"{name}:{port}"
    return f"/api/v1/namespaces/{namespace}/services/{service}/proxy{parts.path.rstrip('/')}/api/v1/query"


def _server_message(response: Exchange) -> str:
    """Returns the message of a Status, or the beginning of the body if it is no Status."""
    try:
        return msgspec.json.decode(response.content, type=_ServerMessage).message[:300]
    except (msgspec.DecodeError, UnicodeError):
        return response.content[:200].decode(errors="replace").strip()


def _is_empty(response: Exchange) -> bool:
    if response.status >= 300:
        return False
    return not decode_as(response.content, dict[str, Any], "list pods.metrics.k8s.io").get("items")


ABSENT_RUNTIME_CLASS = "trimtab-doctor-asks"
"""The name of a RuntimeClass that does not exist in the cluster."""


def build_asking_pod() -> dict[str, Any]:
    """Returns a pod with an annotation to which the webhook responds with a warning, which proves that it was
    called."""
    return _build_pod({"annotations": {PROBE_ANNOTATION: "doctor"}}, {})


def build_pod_of_absent_class() -> dict[str, Any]:
    """Returns a pod with a RuntimeClass that does not exist. RuntimeClass admission refuses the pod, unless that plugin
    is off.

    The pod opts out of Trimtab's webhook."""
    return _build_pod({"labels": {OPT_OUT: "true"}}, {"runtimeClassName": ABSENT_RUNTIME_CLASS})


def build_invalid_policy() -> dict[str, Any]:
    """Returns a PodPolicy that the CRD's schema accepts and Trimtab's validating webhook denies."""
    meta = {"name": "trimtab-doctor-asks"}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": meta, "spec": {"actions": {}, "areYouThere": True}}


def _build_pod(metadata: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    """Returns a pod that the restricted Pod Security Standard admits; it has requests and limits, which a quota may
    require."""
    amounts = {"cpu": "1m", "memory": "1Mi"}
    container = {
        "name": "asks",
        "image": "trimtab.invalid/doctor",
        "resources": {"requests": amounts, "limits": amounts},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    secure = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "trimtab-doctor-", **metadata},
        "spec": {"automountServiceAccountToken": False, "securityContext": secure, "containers": [container], **spec},
    }


T = TypeVar("T")
Processes = Mapping[str, Read[DeploymentState | None]]


def read_cluster(client: Client, namespace: str, asked_in: str) -> ObservedCluster:
    """Read the whole state of the cluster. Raises Unreachable if no API server answers.

    A part that the API server refuses to return is Unreadable.
    """
    from trimtab.diagnosis.check_signatures import read_signatures
    from trimtab.kube.errors import KubeFault

    probe = ClusterProbe(client)
    # First of all: the Date header of this response is compared with this machine's clock.
    here = clock.utc_now()
    version_response = probe.send_request("GET", "/version")
    server_time = version_response.server_time

    def read(call: Callable[[], T]) -> Read[T]:
        try:
            return call()
        except KubeFault as error:
            doing, _, problem = str(error).partition(": ")
            return Unreadable(doing, problem)

    reader = DoctorReader(probe, namespace)
    every_process: Processes = {each.name: read(lambda name=each.name: reader.read_process(name)) for each in PROCESSES}  # type: ignore[misc]
    metrics_api_process = find_metrics_api(every_process)
    mutating = read(reader.list_mutating_configurations)
    return ObservedCluster(
        namespace=namespace,
        trial_namespace=asked_in,
        is_opted_out=read(lambda: reader.is_opted_out(asked_in)),
        local_time=here,
        server_time=Unreadable("the API server's time", "the response has no Date header")
        if server_time is None
        else server_time,
        version=_parse_version(version_response.content),
        own_namespace=read(reader.read_namespace),
        crd=read(
            lambda: reader.read_object("CustomResourceDefinition", "podpolicies.trimtab.dev", observed.decode_crd)
        ),
        pool_status_crd=read(
            lambda: reader.read_object("CustomResourceDefinition", "poolstatuses.trimtab.dev", observed.decode_crd)
        ),
        drain_order_crd=read(
            lambda: reader.read_object("CustomResourceDefinition", "drainorders.trimtab.dev", observed.decode_crd)
        ),
        processes={name: every_process[name] for name in INSTALLED},
        secret=read(reader.read_certificate),
        signatures=read_signatures(client, namespace, read),
        mutating=mutating,
        validating=read(
            lambda: reader.read_object(
                "ValidatingWebhookConfiguration", CONFIGURATION_NAME, observed.decode_configuration
            )
        ),
        pod_trial=read(lambda: probe.create_dry_run(build_asking_pod(), asked_in)),
        policy_trial=read(lambda: probe.create_dry_run(build_invalid_policy())),
        runtime_class_trial=read(lambda: probe.create_dry_run(build_pod_of_absent_class(), asked_in)),
        missing_permissions={
            name: read(lambda name=name, state=state: reader.find_missing_permissions(name, state, mutating))  # type: ignore[misc]
            for name, state in every_process.items()
            if state is not None
        },
        account_policies=read(lambda: reader.read_account_policies(mutating, metrics_api_process)),
        autoscaler=read(reader.read_autoscaler_state),
        estafette=read(reader.read_estafette),
        usage_source=read(lambda: probe.query_usage_source(reader.prometheus_url(find_recommender(every_process)))),
        vpa=read(lambda: reader.read_vpa(mutating)),
        vpa_statuses=read(lambda: read_vpa_statuses(client)),
        leases={name: read(lambda name=name: reader.read_lease(name)) for name in WORKERS},  # type: ignore[misc]
        policies=read(reader.list_policies),
        pools=read(reader.read_pools),
        metrics_api=read(lambda: reader.read_metrics_api(metrics_api_process)),
        compiled_policies=read(lambda: read_compiled_policies(probe.list_objects, "MutatingAdmissionPolicy")),
        validating_policies=read(lambda: read_compiled_policies(probe.list_objects, "ValidatingAdmissionPolicy") or ()),
        references=read(lambda: read_references(client, namespace, probe.review_access)),
        autoscaling=read(lambda: read_autoscaling(client, namespace)),
        expander_map=read(lambda: reader.read_object("ConfigMap", MAP_NAME, decode_expander_map, "kube-system")),
    )


def _parse_version(body: bytes) -> Read[tuple[int, int]]:
    """Returns (major, minor) of the API server's version; managed clusters report a minor such as "34+"."""
    try:
        version = msgspec.json.decode(body)
        return int(version["major"]), int(str(version["minor"]).rstrip("+"))
    except (msgspec.DecodeError, KeyError, ValueError, TypeError) as error:
        return Unreadable("/version", f"{type(error).__name__}: {error}")


def _is_injected(mutating: Read[tuple[WebhookConfigurationState, ...]]) -> bool:
    """Returns whether cert-manager writes the caBundle of Trimtab's webhook configuration."""
    configurations = () if isinstance(mutating, Unreadable) else mutating
    return any(configuration.injected for configuration in configurations if configuration.name == CONFIGURATION_NAME)


class DoctorReader:
    """Reads one part of the state per method; every method raises any KubeFault."""

    def __init__(self, probe: ClusterProbe, namespace: str) -> None:
        self._probe, self._namespace = probe, namespace

    def read_object(
        self, kind: str, name: str, convert: Callable[[Mapping[str, Any]], T], namespace: str = ""
    ) -> T | None:
        """Returns `convert` of the object, or None if the object does not exist."""
        document = self._probe.get_object(kind, name, namespace)
        return convert(document) if document is not None else None

    def read_process(self, name: str) -> DeploymentState | None:
        return self.read_object("Deployment", account_name(name), observed.decode_process, self._namespace)

    def read_lease(self, name: str) -> Any:
        return self.read_object("Lease", account_name(name), decode_lease, self._namespace)

    def read_namespace(self) -> NamespaceState | None:
        from trimtab.cluster.api.meta import Metadata
        from trimtab.cluster.pause_mark import pause_reason

        shape = self._probe.get_object("Namespace", self._namespace)
        return (
            None if shape is None else NamespaceState(paused=pause_reason(msgspec.convert(shape["metadata"], Metadata)))
        )

    def is_opted_out(self, namespace: str) -> bool:
        labels = (self._probe.get_object("Namespace", namespace) or {"metadata": {}})["metadata"].get("labels") or {}
        excluded = DEFAULT_SETTINGS.system_namespaces | {self._namespace}
        return labels.get(OPT_OUT) == "true" or namespace in excluded

    def read_certificate(self) -> certs.CertificateFiles | None:
        from trimtab.kube import certificate_rotation as shared

        return self.read_object("Secret", CERTIFICATE_SECRET, shared.files_in_secret, self._namespace)

    def list_mutating_configurations(self) -> tuple[WebhookConfigurationState, ...]:
        configurations = map(observed.decode_configuration, self._probe.list_objects("MutatingWebhookConfiguration"))
        return tuple(sorted(configurations, key=lambda configuration: configuration.name))

    def find_missing_permissions(
        self, process: str, state: Read[DeploymentState], mutating: Read[tuple[WebhookConfigurationState, ...]]
    ) -> Read[tuple[str, ...]]:
        """Returns the permissions that the process's account lacks, as text.

        The webhook needs fewer permissions if cert-manager writes its certificate. If the webhook's configuration
        cannot be read, the result is Unreadable.
        """
        if isinstance(mutating, Unreadable) and is_webhook(process):
            return mutating
        deployment = state if isinstance(state, DeploymentState) else DeploymentState(replicas=0, ready_replicas=0)
        rights = needed_permissions(
            process,
            self._namespace,
            scale_namespaces=deployment.scale_namespaces,
            cert_manager=has_injected_certificate(deployment) if is_metrics_api(process) else _is_injected(mutating),
            autoscaler_status=deployment.settings.get("TRIMTAB_AUTOSCALER_STATUS_CONFIGMAP") or STATUS_NAME,
            writes_vpa_status=deployment.writes_vpa_status,
        )
        return missing_permissions(rights, process, self._namespace, self._probe.review_access)

    def read_account_policies(
        self, mutating: Read[tuple[WebhookConfigurationState, ...]], metrics_api: Read[DeploymentState | None]
    ) -> Read[tuple[AccountPolicy, ...] | None]:
        """Returns the state of each admission policy that `trimtab install` renders, or None if this API server has no
        ValidatingAdmissionPolicies.

        There is a policy for a caBundle only if cert-manager does not write it. `metrics_api` is the metrics API's
        Deployment: the policies of its account are read only if it is installed.
        """
        from trimtab.kube.errors import NotFound

        if isinstance(mutating, Unreadable):
            return mutating
        deployment = None if isinstance(metrics_api, Unreadable) else metrics_api
        rendered = expected_account_policies(self._namespace, deployment, is_injected=_is_injected(mutating))
        try:
            stored = {
                (kind, document["metadata"]["name"]): document
                for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
                for document in self._probe.list_objects(kind)
            }
        except NotFound:
            # ValidatingAdmissionPolicy is stable since Kubernetes 1.30; an older API server does not serve v1.
            return None
        return tuple(observed.decode_account_policies(rendered, stored))

    def read_autoscaler_state(self) -> AutoscalerState:
        processes = tuple(observed.list_autoscaler_arguments(self._probe.list_objects("Deployment", "kube-system")))
        names = dict.fromkeys(key_of_process(arguments)[1] for arguments in processes) or {STATUS_NAME: None}
        reports = [report for name in names if (report := self._read_autoscaler_status(name)) is not None]
        unreadable = next((report for report in reports if isinstance(report, Unreadable)), None)
        joined = join_autoscalers([report for report in reports if isinstance(report, Autoscaler)])
        return AutoscalerState(status_report=unreadable or joined, processes=processes)

    def _read_autoscaler_status(self, name: str) -> Autoscaler | Unreadable | None:
        status = self._probe.get_object("ConfigMap", name, "kube-system")
        if status is None:
            return None
        updated = (status["metadata"].get("annotations") or {}).get(UPDATED_ANNOTATION, "")
        report = read_autoscaler((status.get("data") or {}).get("status", ""), updated)
        return replace(report, name=f"kube-system/{name}") if isinstance(report, Autoscaler) else report

    def read_estafette(self) -> EstafetteState:
        from trimtab.inputs.import_estafette import find_compactors_and_nodes

        deployments, marks = find_compactors_and_nodes(self._probe.client)
        return EstafetteState(
            running=tuple(str(deployment) for deployment in deployments if deployment.replicas),
            stranded=tuple(mark.name for mark in marks if mark.is_stranded),
        )

    def prometheus_url(self, recommender: Read[DeploymentState | None]) -> str:
        """Returns the URL of Prometheus in the recommender's settings, or an empty string if there is none."""
        return (
            recommender.settings.get("TRIMTAB_RECOMMENDER_PROMETHEUS_URL", "")
            if isinstance(recommender, DeploymentState)
            else ""
        )

    def read_vpa(self, mutating: Read[tuple[WebhookConfigurationState, ...]]) -> Read[Vpa]:
        if isinstance(mutating, Unreadable):
            return mutating
        hooks = {("", configuration.name): observed.find_vpa_targets(configuration) for configuration in mutating}
        return read_vpa(self._probe.client, hooks)

    def list_policies(self) -> tuple[PolicyState, ...]:
        """Returns the state of every PodPolicy; an empty tuple if the API server does not serve the kind, which
        `check_crd` reports."""
        from trimtab.kube.errors import NotFound

        try:
            policies = tuple(map(observed.decode_policy, self._probe.list_objects("PodPolicy")))
        except NotFound:
            return ()
        if not any(policy.required_class for policy in policies):
            return policies
        classes = {document["metadata"]["name"] for document in self._probe.list_objects("RuntimeClass")} | {""}
        return tuple(replace(policy, is_class_missing=policy.required_class not in classes) for policy in policies)

    def read_pools(self) -> PoolReading:
        from trimtab.compactor.cluster_reader import pools_of
        from trimtab.kube.listing import iter_objects
        from trimtab.kube.resources import LIST_SOURCES

        place = replace(LIST_SOURCES["ConfigMap"], namespace=self._namespace, label_selector=POOL)
        return pools_of(shape for _, shape in iter_objects(self._probe.client, place))

    def read_metrics_api(self, deployment: Read[DeploymentState | None]) -> Read[MetricsApiState]:
        """Returns the providers of custom metrics, and the Deployment of `trimtab metrics-api`."""
        services = self._probe.list_objects("APIService")
        return deployment if isinstance(deployment, Unreadable) else read_metrics_api_state(services, deployment)
