"""What would evicted pods be given by policies, were they admitted again now?

Policies are watched from the beginning; the facts they rest on, and the templates that owners make pods of, only while
there is a policy. Until all of that was read once nobody knows, and nothing is planned.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any

from trimtab.admission.readmitted import readmitted
from trimtab.cluster.api.meta import Shape, get
from trimtab.cluster.api.workload import PodTemplate, Templated
from trimtab.cluster.mistake import Mistake
from trimtab.cluster.owner import Owner
from trimtab.cluster.pod import Pod
from trimtab.cluster.reason import Code, NotYet, Unreadable
from trimtab.cluster.recommendation import LABEL as RECOMMENDATIONS
from trimtab.cluster.resources import Amounts
from trimtab.kube.client import Client
from trimtab.kube.kinds import PLACES, Source
from trimtab.kube.state import Change, What
from trimtab.kube.state import Terms as WatchTerms
from trimtab.kube.watch import Holds, Watch
from trimtab.packing.world import Again
from trimtab.policy.document import Policies
from trimtab.policy.facts import EVERYTHING, Facts
from trimtab.policy.gathering import Gathering
from trimtab.policy.held import OWNERS, holds
from trimtab.policy.load import load_policies
from trimtab.policy.standing import Loaded, Standing, load_object
from trimtab.policy.subject import Terms
from trimtab.runtime import files
from trimtab.runtime.errors import RuntimeFault

POLICY, TEMPLATE = "PodPolicy", "Template"
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
class Heard:
    """Policies, facts and templates, as changes told them. No thread; not for two."""

    terms: Terms
    policies: Policies | None = None
    """Those of a folder; None: those that are heard of."""
    _standing: Standing = field(default_factory=Standing)
    _gathering: Gathering = field(init=False)
    _templates: dict[Key, PodTemplate] = field(default_factory=dict)
    _rests_on: tuple[Policies, Facts, Terms] | None = None
    _known: dict[Key, tuple[PodTemplate, Amounts | Unreadable]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._gathering = Gathering(self.terms.own_namespace)

    @property
    def in_force(self) -> Policies:
        return self.policies if self.policies is not None else self._standing.policies()

    def hear(self, change: Change[Any]) -> None:
        """Something came, changed or went."""
        namespace, name = change.key
        gone = change.what is What.DELETED
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

    def _hear_template(self, key: Key, made: PodTemplate | None) -> None:
        self._templates.pop(key, None)
        if made is not None:
            self._templates[key] = made

    def again(self) -> Again:
        """By everything heard so far; one decision for all pods of an owner, remembered while nothing differs."""
        # Were the VPA's own webhook not there at that moment, pods would get their static request: the larger one.
        facts = self._gathering.facts(vpa_acts=False)
        terms = replace(self.terms, paused=self.terms.paused or self._gathering.paused)
        rests_on = (self.in_force, facts, terms)
        if self._rests_on != rests_on:
            self._rests_on = rests_on
            self._known.clear()

        def asked(pod: Pod) -> Amounts | Unreadable | None:
            found = self._of(pod, *rests_on)
            return None if found is None or _no_more(found, pod) else found

        return asked

    def _of(self, pod: Pod, policies: Policies, facts: Facts, terms: Terms) -> Amounts | Unreadable | None:
        """None where its owner has no template that we read."""
        owner = pod.owner
        key = (pod.namespace, owner.kind, owner.name) if owner is not None else ("", "", "")
        made = self._templates.get(key)
        if owner is None or made is None:
            return None
        known = self._known.get(key)
        if known is None or known[0] is not made:
            asks = readmitted(made, Owner(owner.kind, owner.name), pod.namespace, policies, facts, terms)
            known = self._known[key] = (made, asks)
        return known[1]


@dataclass(slots=True)
class Admitting:
    """The watches, from `with` on. Everything but their own threads is for one thread."""

    client: Client
    heard: Heard
    _changes: SimpleQueue[Change[Any]] = field(default_factory=SimpleQueue)
    _first: Watch | None = None
    _second: Watch | None = None

    def __enter__(self) -> Admitting:
        if self.heard.policies is None:
            held: Holds = {POLICY: load_object}  # type: ignore[dict-item]
            self._first = self._watch((PLACES[POLICY],), held)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for watch in (self._first, self._second):
            if watch is not None:
                watch.stop()

    def again(self) -> Again | NotYet | None:
        """As a plan asks for it; None where no policy stands, NotYet while not all was read."""
        if self._first is not None and not self._first.synced:
            return NotYet(reason=POLICIES_UNSEEN("policies were not read yet"), have="no list", need="all of them")
        self._hear()
        if not self.heard.in_force.all:
            return None
        if self._second is None:
            own = self.heard.terms.own_namespace
            self._second = self._watch(sources(own), {**holds(own), **dict.fromkeys(TEMPLATES, template)})
        if not self._second.synced:
            told = POLICIES_UNSEEN("what policies decide by was not read yet")
            return NotYet(reason=told, have="some lists", need="all of them")
        self._hear()
        return self.heard.again()

    def _watch(self, lists: tuple[Source, ...], held: Holds) -> Watch:
        return Watch(self.client, lists, terms=WATCHED, holds=held, told=self._changes.put).start()

    def _hear(self) -> None:
        for _ in range(self._changes.qsize()):
            self.heard.hear(self._changes.get())


def _no_more(found: Amounts | Unreadable, pod: Pod) -> bool:
    """Then its kind is the one it has now."""
    asks = pod.ask.requests
    if isinstance(found, Unreadable) or isinstance(asks, Unreadable):
        return False
    return all(asks.get(name, 0) >= amount for name, amount in found.items())


def template(found: Shape) -> PodTemplate | None:
    """What is held of an owner: the pod it makes next; None while it wants none, as old ReplicaSets do."""
    assert isinstance(found, Templated)
    return found.spec.template if get(found.spec.replicas, 1) else None


def sources(own_namespace: str) -> tuple[Source, ...]:
    """Every list that decisions rest on. Of owners only the metadata, of ConfigMaps our recommendations."""
    shards = Source(
        kind="ConfigMap", group_version="v1", plural="configmaps", namespace=own_namespace,
        labels=f"{RECOMMENDATIONS}=v1",
    )  # fmt: skip
    facts = tuple(PLACES[kind] for kind in sorted(EVERYTHING))
    owners = tuple(replace(PLACES[kind], slim=True) for kind in OWNERS)
    return (*facts, *owners, *(PLACES[kind] for kind in TEMPLATES), shards)


def folder(paths: tuple[Path, ...]) -> Policies | None:
    """The policies of these files; None where none are named. Raises UnreadableFiles or UnsoundPolicies."""
    if not paths:
        return None
    loaded = load_policies(files.read(paths))
    if loaded.mistakes:
        raise UnsoundPolicies(loaded.mistakes)
    return loaded.policies


class UnsoundPolicies(RuntimeFault):
    """Mistakes in the folder's policies: all of them, together."""

    def __init__(self, mistakes: tuple[Mistake, ...]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
