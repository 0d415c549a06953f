"""A watchdog in memory: what the cluster would tell goes in, what would be written comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from prometheus_client import CollectorRegistry

from tests.admission.audit.worlds import DAY
from tests.build import NAMESPACE
from trimtab.admission.audit.drift import AuditInputs, Auditor
from trimtab.admission.audit.harm import FailureHistory, HarmTerms
from trimtab.admission.audit.original_pod import AuditedPodReader
from trimtab.cluster.api.admissionregistration import Custom, MutatingWebhookConfiguration
from trimtab.cluster.api.meta import Dated, ManagedFields, Metadata, Revised
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.api.workload import Workload
from trimtab.cluster.timestamps import format_timestamp
from trimtab.kube.client import Client
from trimtab.kube.errors import ApiStatus, Conflict, KubeFault
from trimtab.kube.events import Recorder
from trimtab.kube.objects import Writer
from trimtab.kube.watch_state import ChangeType, WatchEvent
from trimtab.policy.cluster_facts import NO_FACTS
from trimtab.policy.pod_context import DEFAULT_SETTINGS, AdmissionSettings
from trimtab.policy.podpolicy import Policies
from trimtab.runtime import log
from trimtab.watchdog.harm_brake import Brake, BrakeActuator
from trimtab.watchdog.loop import Loop
from trimtab.watchdog.metrics import Metrics
from trimtab.watchdog.policy_events import PolicyEventRecorder
from trimtab.watchdog.policy_state import AuditStateBuilder, object_projections
from trimtab.watchdog.policy_status import PolicyStatusWriter

CONFIGURATION = "trimtab"


@dataclass
class Paper:
    """Stands where the API server's client would: everything is written down, `refuse` says no to the next write."""

    writes: list[tuple[str, str, Mapping[str, Any]]] = field(default_factory=list)
    refuse: KubeFault | None = None

    def write(self, method: str, path: str, body: Mapping[str, Any], **_: object) -> bytes:
        if self.refuse is not None:
            refused, self.refuse = self.refuse, None
            raise refused
        self.writes.append((method, path, body))
        return b"{}"

    def to(self, part: str) -> list[Mapping[str, Any]]:
        """Bodies of the writes whose path has this in it."""
        return [body for _, path, body in self.writes if part in path]


CONFLICT = Conflict("set to warn", 409, ApiStatus(code=409, reason="Conflict"))


@dataclass
class Bench:
    """The loop and everything around it."""

    loop: Loop
    paper: Paper
    seen: AuditStateBuilder
    pods: list[Pod]
    clock: list[float]

    def look(self, *, after: float = 1.0) -> float:
        self.clock[0] += after
        return self.loop.run_round()

    def tell(self, kind: str, item: Any, *, gone: bool = False) -> None:
        """As a watch would."""
        key = (item.metadata.namespace, item.metadata.name)
        value = _HOLDS[kind](item)
        what = ChangeType.DELETED if gone else ChangeType.ADDED
        self.seen.apply_event(WatchEvent(what, kind, key, value if gone else None, None if gone else value))

    def metric(self, name: str, **labels: str) -> float | None:
        return self.loop.metrics.registry.get_sample_value(name, labels or None)

    @property
    def events(self) -> list[Mapping[str, Any]]:
        return [body for body in self.paper.to("/events") if "reason" in body]

    @property
    def statuses(self) -> list[Mapping[str, Any]]:
        return [body["status"] for body in self.paper.to("/status")]


_HOLDS = object_projections("trimtab-system", AuditedPodReader())


def bench(
    *, terms: AdmissionSettings = DEFAULT_SETTINGS, policies: Policies | None = None, brake: bool = True, **more: Any
) -> Bench:
    """Our webhook was registered long ago; `policies` are a folder's."""
    paper, clock = Paper(), [float(DAY)]
    quiet = log.build_logger("error")
    writer = Writer(client=cast("Client", paper))
    base = AuditInputs(policies=policies or Policies(), facts=NO_FACTS, terms=terms)
    builder = AuditStateBuilder(base, CONFIGURATION, policies=policies is None)
    pods: list[Pod] = []
    reader = _HOLDS["Pod"]
    door: BrakeActuator | None = more.pop("door", Brake(writer, quiet) if brake else None)
    recorder = Recorder(writer=writer, controller="trimtab.dev/watchdog", instance="w-1", elapsed=lambda: clock[0])
    loop = Loop(
        state_builder=builder,
        pods=lambda: [reader(pod) for pod in pods],
        is_fresh=lambda: True,
        brake=door,
        statuses=PolicyStatusWriter(writer=writer, log=quiet, every=60, elapsed=lambda: clock[0]),
        event_recorder=PolicyEventRecorder(recorder, quiet, 3600, more.pop("events", 50), lambda: clock[0]),
        metrics=Metrics(CollectorRegistry(), lambda: True, lambda: 0.0),
        interval=30,
        now=lambda: clock[0],
        elapsed=lambda: clock[0],
        auditor=Auditor(most=more.pop("most", 1000)),
        history=FailureHistory(HarmTerms()),
    )
    bench = Bench(loop, paper, builder, pods, clock)
    bench.tell("MutatingWebhookConfiguration", configuration())
    return bench


def configuration(created: int = DAY - 10**6) -> MutatingWebhookConfiguration:
    return MutatingWebhookConfiguration(
        metadata=Metadata(name=CONFIGURATION, creation_timestamp=format_timestamp(created)), webhooks=()
    )


def policy_object(
    name: str,
    actions: dict[str, Any],
    *,
    since: int = DAY - 1000,
    version: str = "7",
    generation: int = 1,
    status: Any = None,
    **spec: Any,
) -> Custom:
    """A PodPolicy of the cluster, last written when it is said."""
    fields = ManagedFields(time=format_timestamp(since), fields={"f:spec": {}})
    meta = Dated(
        name=name,
        uid=f"uid-{name}",
        resource_version=version,
        generation=generation,
        creation_timestamp=format_timestamp(since),
        managed_fields=(fields,),
    )
    return Custom(metadata=meta, spec={"actions": actions, **spec}, status=status)


def deployment(name: str) -> Workload:
    return Workload(kind="Deployment", metadata=Revised(name=name, namespace=NAMESPACE, uid=f"uid-{name}"))
