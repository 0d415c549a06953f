"""How an API server is asked: for objects as plain values, for rights, for how it answers.

Objects that are created and not stored (`dryRun=All`), to see how the API server answers to them.

The door: one look at a cluster. What cannot be read is named, and the rest is read all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from trimtab.admission.handler import ASKED
from trimtab.cli.doctor import observed
from trimtab.cli.doctor.observed import (
    AccountPolicy,
    AutoscalerState,
    DeploymentState,
    DryRunResult,
    EstafetteState,
    NamespaceState,
    ObservedCluster,
    PolicyState,
    Read,
    UsageSourceState,
    Vpa,
    WebhookConfigurationState,
    needed,
)
from trimtab.cli.install.deployments import WORKERS
from trimtab.cli.install.names import CONFIGURATION, PROCESSES, SECRET, account
from trimtab.cluster.cluster_autoscaler import NAME, UPDATED
from trimtab.cluster.cluster_autoscaler import read as read_autoscaler
from trimtab.cluster.pool import LABEL as POOL
from trimtab.cluster.pool_config import PoolReading
from trimtab.cluster.reason import Unreadable
from trimtab.kube import objects
from trimtab.kube.client import Client, Exchange, segment
from trimtab.kube.errors import Unreachable, refused
from trimtab.kube.listing import pages
from trimtab.kube.objects import parsed
from trimtab.kube.resources import PLACES, collection
from trimtab.policy import vpa_webhook
from trimtab.policy.pod_context import DEFAULT_TERMS, OPT_OUT
from trimtab.policy.podpolicy import API_VERSION, KIND
from trimtab.runtime import clock
from trimtab.runtime.clock import elapsed

if TYPE_CHECKING:
    import certs


_AT_ONCE = 8
_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
METRICS = "/apis/metrics.k8s.io/v1beta1/pods"


class _Said(msgspec.Struct):
    """A Status, or what else came."""

    message: str = ""


@dataclass(frozen=True, slots=True)
class ClusterProbe:
    """Everything raises any KubeFault."""

    client: Client

    def exchange(self, method: str, path: str, query: Any = None, body: Mapping[str, Any] | None = None) -> Exchange:
        deadline = self.client.deadlines.read
        return self.client.exchange(method, path, deadline=deadline, query=query, body=body, doing=f"{method} {path}")

    def one(self, kind: str, name: str, namespace: str = "") -> dict[str, Any] | None:
        """None where there is none."""
        return objects.get(self.client, kind, name, namespace)

    def all(self, kind: str, namespace: str = "") -> Iterator[dict[str, Any]]:
        place = replace(PLACES[kind], namespace=namespace) if namespace else PLACES[kind]
        for page in pages(self.client, place):
            yield from (msgspec.json.decode(raw) for raw in page.items)

    def trial(self, document: Mapping[str, Any], namespace: str = "") -> DryRunResult:
        """Created, and not stored."""
        begun = elapsed()
        path = collection(PLACES[document["kind"]], namespace)
        found = self.exchange("POST", path, {"dryRun": "All"}, document)
        return DryRunResult(
            status=found.status, message=_said(found) if found.status >= 300 else "", warnings=found.warnings,
            seconds=elapsed() - begun,
        )  # fmt: skip

    def allowed(self, reviews: Sequence[Mapping[str, Any]]) -> list[bool]:
        """The answer to each SubjectAccessReview."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(self._allowed, reviews))

    def _allowed(self, review: Mapping[str, Any]) -> bool:
        doing = "create subjectaccessreviews"
        found = parsed(self.client.write("POST", _REVIEWS, review, doing=doing), dict[str, Any], doing)
        return bool((found.get("status") or {}).get("allowed"))

    def usage(self, prometheus: str) -> UsageSourceState:
        """The metrics API, or the Prometheus of this URL, through the API server."""
        if not prometheus:
            found = self.exchange("GET", METRICS, {"limit": 1})
            _may(found, "list pods.metrics.k8s.io")
            return UsageSourceState(name="metrics API", status=found.status, said=_said(found), empty=_is_empty(found))
        found = self.exchange("GET", _through(prometheus), {"query": "vector(1)"})
        _may(found, f"reach {prometheus} through the API server (get services/proxy)")
        return UsageSourceState(name=prometheus, status=found.status, said=_said(found))


def _may(found: Exchange, doing: str) -> None:
    if found.status in (401, 403):
        raise refused(doing, found.status, found.content)


def _through(url: str) -> str:
    """The path by which the API server passes on to a Service. Raises Unreachable where it is none of this cluster."""
    parts = urlsplit(url)
    words = (parts.hostname or "").split(".")
    if len(words) < 2 or words[2:] not in ([], ["svc"], ["svc", "cluster", "local"]):
        raise Unreachable(f"ask {url}: it is no Service of this cluster, so it cannot be asked from here")
    name, namespace = map(segment, words[:2])
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    named = f"https:{name}:{port}" if secure else f"{name}:{port}"
    return f"/api/v1/namespaces/{namespace}/services/{named}/proxy{parts.path.rstrip('/')}/api/v1/query"


def _said(found: Exchange) -> str:
    """In its own words, cut short."""
    try:
        return msgspec.json.decode(found.content, type=_Said).message[:300]
    except (msgspec.DecodeError, UnicodeError):
        return found.content[:200].decode(errors="replace").strip()


def _is_empty(found: Exchange) -> bool:
    if found.status >= 300:
        return False
    return not parsed(found.content, dict[str, Any], "list pods.metrics.k8s.io").get("items")


NO_SUCH_CLASS = "trimtab-doctor-asks"
"""A RuntimeClass that there is not."""


def asked_pod() -> dict[str, Any]:
    """A pod that the webhook answers with a warning: it was asked, and heard."""
    return _pod({"annotations": {ASKED: "doctor"}}, {})


def of_no_class() -> dict[str, Any]:
    """A pod that RuntimeClass admission refuses, where it is on; kept from us, so that it alone decides."""
    return _pod({"labels": {OPT_OUT: "true"}}, {"runtimeClassName": NO_SUCH_CLASS})


def senseless() -> dict[str, Any]:
    """A PodPolicy that the schema lets through and we refuse."""
    meta = {"name": "trimtab-doctor-asks"}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": meta, "spec": {"actions": {}, "areYouThere": True}}


def _pod(meta: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    """Under the restricted pod security standard, and asking for what a quota may demand."""
    amounts = {"cpu": "1m", "memory": "1Mi"}
    container = {
        "name": "asks", "image": "trimtab.invalid/doctor", "resources": {"requests": amounts, "limits": amounts},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }  # fmt: skip
    secure = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "trimtab-doctor-", **meta},
        "spec": {
            "automountServiceAccountToken": False, "securityContext": secure, "containers": [container], **spec,
        },
    }  # fmt: skip


T = TypeVar("T")
Processes = Mapping[str, Read[DeploymentState | None]]


def look(client: Client, namespace: str, asked_in: str) -> ObservedCluster:
    """All of it. Raises Unreachable where there is no API server at all."""
    from trimtab.cli.doctor.check_signatures import signed
    from trimtab.kube.errors import KubeFault

    asking = ClusterProbe(client)
    here = clock.utc()
    greeting = asking.exchange("GET", "/version")
    there = greeting.at

    def read(what: Callable[[], T]) -> Read[T]:
        try:
            return what()
        except KubeFault as error:
            doing, _, problem = str(error).partition(": ")
            return Unreadable(doing, problem)

    door = DoctorReader(asking, namespace)
    processes: Processes = {name: read(lambda name=name: door.process(name)) for name in PROCESSES}  # type: ignore[misc]
    mutating = read(door.mutating)
    return ObservedCluster(
        namespace=namespace,
        asked_in=asked_in,
        opted_out=read(lambda: door.opted_out(asked_in)),
        here=here,
        there=Unreadable("the API server's time", "it does not say") if there is None else there,
        version=_version(greeting.content),
        home=read(door.home),
        crd=read(lambda: door.made("CustomResourceDefinition", "podpolicies.trimtab.dev", observed.crd)),
        processes=processes,
        secret=read(door.secret),
        signed=signed(client, namespace, read),
        mutating=mutating,
        validating=read(lambda: door.made("ValidatingWebhookConfiguration", CONFIGURATION, observed.configuration)),
        pod=read(lambda: asking.trial(asked_pod(), asked_in)),
        document=read(lambda: asking.trial(senseless())),
        runtime_class=read(lambda: asking.trial(of_no_class(), asked_in)),
        rights={
            name: read(lambda name=name, found=found: door.lacking(name, found, mutating))  # type: ignore[misc]
            for name, found in processes.items()
            if found is not None
        },
        account_policies=read(lambda: door.account_policies(mutating)),
        scaler=read(door.scaler),
        estafette=read(door.estafette),
        source=read(lambda: asking.usage(door.prometheus(processes["recommender"]))),
        vpa=read(lambda: door.vpa(mutating)),
        leases={name: read(lambda name=name: door.lease(name)) for name in WORKERS},  # type: ignore[misc]
        policies=read(door.policies),
        pools=read(door.pools),
    )


def _version(body: bytes) -> Read[tuple[int, int]]:
    """Managed clusters write a minor of "34+"."""
    try:
        found = msgspec.json.decode(body)
        return int(found["major"]), int(str(found["minor"]).rstrip("+"))
    except (msgspec.DecodeError, KeyError, ValueError, TypeError) as error:
        return Unreadable("/version", f"{type(error).__name__}: {error}")


def _is_injected(mutating: Read[tuple[WebhookConfigurationState, ...]]) -> bool:
    """Does cert-manager keep our caBundle?"""
    known = () if isinstance(mutating, Unreadable) else mutating
    return any(each.injected for each in known if each.name == CONFIGURATION)


class DoctorReader:
    """What is read, one thing at a time. Everything raises any KubeFault."""

    def __init__(self, asking: ClusterProbe, namespace: str) -> None:
        self._asking, self._namespace = asking, namespace

    def made(self, kind: str, name: str, make: Callable[[Mapping[str, Any]], T], namespace: str = "") -> T | None:
        """One object, as `seen` holds it; None where there is none."""
        found = self._asking.one(kind, name, namespace)
        return make(found) if found is not None else None

    def process(self, name: str) -> DeploymentState | None:
        return self.made("Deployment", account(name), observed.process, self._namespace)

    def lease(self, name: str) -> Any:
        return self.made("Lease", account(name), observed.lease, self._namespace)

    def home(self) -> NamespaceState | None:
        from trimtab.cluster.api.meta import Metadata
        from trimtab.cluster.pool import paused

        found = self._asking.one("Namespace", self._namespace)
        return None if found is None else NamespaceState(paused=paused(msgspec.convert(found["metadata"], Metadata)))

    def opted_out(self, namespace: str) -> bool:
        labels = (self._asking.one("Namespace", namespace) or {"metadata": {}})["metadata"].get("labels") or {}
        spared = DEFAULT_TERMS.system_namespaces | {self._namespace}
        return labels.get(OPT_OUT) == "true" or namespace in spared

    def secret(self) -> certs.CertificateFiles | None:
        from webhook import cert_manager as shared

        return self.made("Secret", SECRET, shared.folder_of, self._namespace)

    def mutating(self) -> tuple[WebhookConfigurationState, ...]:
        found = map(observed.configuration, self._asking.all("MutatingWebhookConfiguration"))
        return tuple(sorted(found, key=lambda each: each.name))

    def lacking(
        self, process: str, found: Read[DeploymentState], mutating: Read[tuple[WebhookConfigurationState, ...]]
    ) -> Read[tuple[str, ...]]:
        """The rights that its account has not, in words. Who keeps the pair decides what the webhook needs."""
        if isinstance(mutating, Unreadable) and process == "webhook":
            return mutating
        known = found if isinstance(found, DeploymentState) else DeploymentState(wanted=0, ready=0)
        rights = needed(
            process, self._namespace, cert_manager=_is_injected(mutating), scale_namespaces=known.scale_namespaces,
            autoscaler_status=known.settings.get("TRIMTAB_AUTOSCALER_STATUS_CONFIGMAP") or NAME,
        )  # fmt: skip
        reviews = [right.review(account(process), self._namespace) for right in rights]
        allowed = self._asking.allowed(reviews)
        return tuple(str(right) for right, may in zip(rights, allowed, strict=True) if not may)

    def account_policies(
        self, mutating: Read[tuple[WebhookConfigurationState, ...]]
    ) -> Read[tuple[AccountPolicy, ...] | None]:
        """Each that an installation of this kind brings. Who keeps the pair decides whether the webhook has one."""
        from trimtab.cli.install.admission_policies import account_policies
        from trimtab.cli.install.names import InstallValues as Values
        from trimtab.kube.errors import NotFound

        if isinstance(mutating, Unreadable):
            return mutating
        wanted = list(account_policies(Values(namespace=self._namespace, cert_manager=_is_injected(mutating))))
        try:
            there = {
                (kind, each["metadata"]["name"]): each
                for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
                for each in self._asking.all(kind)
            }
        except NotFound:
            return None
        return tuple(observed.account_policies(wanted, there))

    def scaler(self) -> AutoscalerState:
        status = self._asking.one("ConfigMap", NAME, "kube-system")
        flags = observed.autoscaler_flags(self._asking.all("Deployment", "kube-system"))
        if status is None:
            return AutoscalerState(told=None, flags=flags)
        updated = (status["metadata"].get("annotations") or {}).get(UPDATED, "")
        return AutoscalerState(told=read_autoscaler((status.get("data") or {}).get("status", ""), updated), flags=flags)

    def estafette(self) -> EstafetteState:
        from trimtab.cli.pools.import_estafette import find

        deployments, marks = find(self._asking.client)
        return EstafetteState(
            running=tuple(str(found) for found in deployments if found.replicas),
            stranded=tuple(mark.name for mark in marks if mark.is_stranded),
        )

    def prometheus(self, recommender: Read[DeploymentState | None]) -> str:
        """Its URL, as the recommender was told; empty where it was told of none."""
        return (
            recommender.settings.get("TRIMTAB_RECOMMENDER_PROMETHEUS_URL", "")
            if isinstance(recommender, DeploymentState)
            else ""
        )

    def vpa(self, mutating: Read[tuple[WebhookConfigurationState, ...]]) -> Read[Vpa]:
        from trimtab.kube.errors import NotFound
        from trimtab.kube.listing import listed
        from trimtab.kube.resources import PLACES

        client = self._asking.client
        try:
            client.get(PLACES["VerticalPodAutoscaler"].path, {"limit": 1}, doing="list verticalpodautoscalers")
        except NotFound:
            return Vpa(installed=False, acts=False)
        if isinstance(mutating, Unreadable):
            return mutating
        called = {("", each.name): observed.vpa(each) for each in mutating}
        slices: dict[vpa_webhook.Key, vpa_webhook.Endpoints] = {}
        for namespace, name in vpa_webhook.services(called):
            place = replace(PLACES["EndpointSlice"], namespace=namespace, labels=f"{vpa_webhook.SERVICE_LABEL}={name}")
            slices |= {key: vpa_webhook.endpoints(shape) for key, shape in listed(client, place)}
        return Vpa(installed=True, acts=bool(vpa_webhook.reach(called, slices)))

    def policies(self) -> tuple[PolicyState, ...]:
        """None where the kind is not served: `crd` says that."""
        from trimtab.kube.errors import NotFound

        try:
            found = tuple(map(observed.standing, self._asking.all("PodPolicy")))
        except NotFound:
            return ()
        if not any(one.required_class for one in found):
            return found
        classes = {each["metadata"]["name"] for each in self._asking.all("RuntimeClass")} | {""}
        return tuple(replace(one, is_class_missing=one.required_class not in classes) for one in found)

    def pools(self) -> PoolReading:
        from trimtab.compactor.cluster_reader import pools_of
        from trimtab.kube.listing import listed
        from trimtab.kube.resources import PLACES

        place = replace(PLACES["ConfigMap"], namespace=self._namespace, labels=POOL)
        return pools_of(shape for _, shape in listed(self._asking.client, place))
