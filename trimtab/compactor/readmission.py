"""What would evicted pods ask for, were they admitted again now: by policies, and by VPAs that act?

Policies and VPAs are watched from the beginning; the facts they rest on, and the templates that owners make pods of,
only while there is a policy or a VPA. Until all of that was read once nobody knows, and nothing is planned.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any

from trimtab.admission.readmission import readmitted
from trimtab.cluster.api.meta import ApiObject, get
from trimtab.cluster.api.workload import PodTemplateSpec, Templated
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.owner import Owner
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.reason import Code, NotYet, Unreadable
from trimtab.cluster.recommendation import LABEL as RECOMMENDATIONS
from trimtab.cluster.resources import Amounts
from trimtab.cluster.timestamps import Seconds
from trimtab.kube.client import Client
from trimtab.kube.informers import ClusterInformers, Holds
from trimtab.kube.resources import PLACES, ListSource
from trimtab.kube.watch_state import ChangeType, WatchEvent
from trimtab.kube.watch_state import WatchSettings as WatchTerms
from trimtab.policy.cluster_facts import EVERYTHING, ClusterFacts
from trimtab.policy.facts_cache import FactsCache
from trimtab.policy.load import load_policies
from trimtab.policy.pod_context import AdmissionSettings
from trimtab.policy.podpolicy import Policies
from trimtab.policy.policy_store import Loaded, PolicyStore, load_object
from trimtab.policy.retained_facts import COUNTED, OWNERS, holds, vpa_with_growth
from trimtab.runtime import clock, files
from trimtab.runtime.files import RuntimeFault
from trimtab.scheduling.cluster_model import Again

POLICY, VPA, TEMPLATE = "PodPolicy", "VerticalPodAutoscaler", "Template"
TEMPLATES = ("ReplicaSetTemplate", "StatefulSetTemplate", "ReplicationControllerTemplate")
WATCHED = WatchTerms(absent=300.0)
"""A CustomResourceDefinition that is installed while we run is noticed within five minutes."""
POLICIES_UNSEEN = Code(
    "policies-not-seen", "Not everything was read yet that policies decide by.",
    "Wait, or see the log: may we list it all?",
)  # fmt: skip

Key = tuple[str, str, str]
"""(namespace, kind, name) of an owner."""


@dataclass(slots=True)
class ReadmissionState:
    """Policies, facts and templates, as changes told them. No thread; not for two."""

    terms: AdmissionSettings
    policies: Policies | None = None
    """Those of a folder; None: those that are heard of."""
    _standing: PolicyStore = field(default_factory=PolicyStore)
    _gathering: FactsCache = field(init=False)
    _templates: dict[Key, PodTemplateSpec] = field(default_factory=dict)
    _rests_on: tuple[Policies, ClusterFacts, AdmissionSettings] | None = None
    _known: dict[Key, tuple[PodTemplateSpec, Amounts | Unreadable]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._gathering = FactsCache(self.terms.own_namespace)

    @property
    def in_force(self) -> Policies:
        return self.policies if self.policies is not None else self._standing.policies()

    def hear(self, change: WatchEvent[Any]) -> None:
        """Something came, changed or went."""
        namespace, name = change.key
        gone = change.what is ChangeType.DELETED
        if change.kind == POLICY:
            self._hear_policy(name, None if gone else change.after)
        elif change.kind in TEMPLATES:
            self._hear_template((namespace, change.kind.removesuffix(TEMPLATE), name), None if gone else change.after)
        elif gone:
            self._gathering.drop(change.kind, change.key)
        else:
            self._gathering.put(change.kind, change.key, change.after)

    def _hear_policy(self, name: str, loaded: Loaded | None) -> None:
        if loaded is None:
            self._standing.drop(name)
        else:
            self._standing.put(name, loaded)

    def _hear_template(self, key: Key, made: PodTemplateSpec | None) -> None:
        self._templates.pop(key, None)
        if made is not None:
            self._templates[key] = made

    @property
    def is_needed(self) -> bool:
        """Whether a policy or a VPA is there that may make a pod's successor ask for more."""
        return bool(self.in_force.all or self._gathering.facts(vpa_reach=()).vpas)

    def again(self, now: Seconds | None = None) -> Again:
        """By everything heard so far; one decision for all pods of an owner, remembered while nothing differs.

        `now` tells how old a VPA is that recommends nothing; None: it is taken for young.
        """
        # Were the VPA's own webhook not there at that moment, pods would get their static request: the larger one.
        facts = self._gathering.facts(vpa_reach=())
        terms = replace(self.terms, paused=self.terms.paused or self._gathering.paused)
        rests_on = (self.in_force, facts, terms)
        if self._rests_on != rests_on:
            self._rests_on = rests_on
            self._known.clear()

        # A VPA that is too young to be left out of account today is not so for ever.
        self._known = {key: known for key, known in self._known.items() if not isinstance(known[1], Unreadable)}

        def asked(pod: PodInfo) -> Amounts | Unreadable | None:
            found = self._of(pod, *rests_on, now)
            return None if found is None or _no_more(found, pod) else found

        return asked

    def _of(
        self, pod: PodInfo, policies: Policies, facts: ClusterFacts, terms: AdmissionSettings, now: Seconds | None
    ) -> Amounts | Unreadable | None:
        """None where its owner has no template that we read."""
        owner = pod.owner
        key = (pod.namespace, owner.kind, owner.name) if owner is not None else ("", "", "")
        made = self._templates.get(key)
        if owner is None or made is None:
            return None
        known = self._known.get(key)
        if known is None or known[0] is not made:
            asks = readmitted(made, Owner(owner.kind, owner.name), pod.namespace, policies, facts, terms, now)
            known = self._known[key] = (made, asks)
        return known[1]


@dataclass(slots=True)
class ReadmissionWatcher:
    """The watches, from `with` on. Everything but their own threads is for one thread."""

    client: Client
    heard: ReadmissionState
    _changes: SimpleQueue[WatchEvent[Any]] = field(default_factory=SimpleQueue)
    _first: ClusterInformers | None = None
    _second: ClusterInformers | None = None

    def __enter__(self) -> ReadmissionWatcher:
        held: Holds = {VPA: vpa_with_growth}  # type: ignore[dict-item]
        if self.heard.policies is None:
            held = {POLICY: load_object, **held}  # type: ignore[dict-item]
        self._first = self._watch(tuple(PLACES[kind] for kind in held), held)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for watch in (self._first, self._second):
            if watch is not None:
                watch.stop()

    def again(self) -> Again | NotYet | None:
        """As a plan asks for it; None where no policy and no VPA is there, NotYet while not all was read."""
        if self._first is not None and not self._first.synced:
            unread = POLICIES_UNSEEN("policies and VPAs were not read yet")
            return NotYet(reason=unread, have="no list", need="all of them")
        self._hear()
        if not self.heard.is_needed:
            return None
        if self._second is None:
            own = self.heard.terms.own_namespace
            self._second = self._watch(sources(own), {**holds(own), **dict.fromkeys(TEMPLATES, template)})
        if not self._second.synced:
            told = POLICIES_UNSEEN("what policies decide by was not read yet")
            return NotYet(reason=told, have="some lists", need="all of them")
        self._hear()
        return self.heard.again(int(clock.utc().timestamp()))

    def _watch(self, lists: tuple[ListSource, ...], held: Holds) -> ClusterInformers:
        return ClusterInformers(self.client, lists, terms=WATCHED, holds=held, on_change=self._changes.put).start()

    def _hear(self) -> None:
        for _ in range(self._changes.qsize()):
            self.heard.hear(self._changes.get())


def _no_more(found: Amounts | Unreadable, pod: PodInfo) -> bool:
    """Then its kind is the one it has now."""
    asks = pod.ask.requests
    if isinstance(found, Unreadable) or isinstance(asks, Unreadable):
        return False
    return all(asks.get(name, 0) >= amount for name, amount in found.items())


def template(found: ApiObject) -> PodTemplateSpec | None:
    """What is held of an owner: the pod it makes next; None while it wants none, as old ReplicaSets do."""
    assert isinstance(found, Templated)
    return found.spec.template if get(found.spec.replicas, 1) else None


def sources(own_namespace: str) -> tuple[ListSource, ...]:
    """Every list that decisions rest on, but VPAs, which are watched from the beginning.

    Of ReplicaSets and CronJobs only the metadata, of ConfigMaps ours.
    """
    shards = ListSource(
        kind="ConfigMap", group_version="v1", plural="configmaps", namespace=own_namespace,
        labels=f"{RECOMMENDATIONS}=v1",
    )  # fmt: skip
    facts = tuple(PLACES[kind] for kind in sorted(EVERYTHING - {VPA}))
    owners = tuple(replace(PLACES[kind], slim=kind not in COUNTED) for kind in OWNERS)
    return (*facts, *owners, *(PLACES[kind] for kind in TEMPLATES), shards)


def folder(paths: tuple[Path, ...]) -> Policies | None:
    """The policies of these files; None where none are named. Raises UnreadableFiles or UnsoundPolicies."""
    if not paths:
        return None
    loaded = load_policies(files.read(paths))
    if loaded.mistakes:
        raise InvalidReadmissionPolicies(loaded.mistakes)
    return loaded.policies


class InvalidReadmissionPolicies(RuntimeFault):
    """Mistakes in the folder's policies: all of them, together."""

    def __init__(self, mistakes: tuple[ConfigError, ...]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
