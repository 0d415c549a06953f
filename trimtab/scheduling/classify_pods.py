"""How does a pod become a kind?

Kinds are made as pods come; `settle` then numbers resources, natures and groups, when all that is spoken of is known.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.api.meta import LabelSelector
from trimtab.cluster.api.pod import NodeSelector, PodAffinityTerm, TopologySpreadConstraint
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.dynamic_resources import Claimed
from trimtab.cluster.pod import PodInfo, Port, SchedulingRequirements
from trimtab.cluster.reason import Reason, Unreadable
from trimtab.cluster.resources import Amounts, larger
from trimtab.cluster.schedulers import SchedulerPlacement
from trimtab.cluster.volume_claims import Claim
from trimtab.scheduling import node_filters
from trimtab.scheduling.node_filters import shared, speaks_of_copied
from trimtab.scheduling.pod_class import PodAffinityRule, PodClass, SpreadRule
from trimtab.scheduling.preferences import PreferenceScores
from trimtab.scheduling.reasons import UNJUDGED, VOLUME_IN_USE
from trimtab.scheduling.topology import (
    Namespaces,
    Term,
    Topology,
    TopologyGroup,
    TopologyGroups,
    as_asked,
    namespaces_of,
    narrowed,
)


@dataclass(slots=True)
class PodClassifier:
    inventory: Inventory
    kinds: list[PodClass] = field(default_factory=list)
    amounts: list[Amounts] = field(default_factory=list)
    """Kind → everything it asks for, volumes to attach included."""
    known: dict[object, PodClass] = field(default_factory=dict)
    roster: TopologyGroups = field(init=False)
    wheres: list[bytearray] = field(default_factory=list)
    resources: tuple[str, str] = ("cpu", "memory")
    names: tuple[str, ...] = ()
    counted: Mapping[int, int] = field(default_factory=dict)
    """Kind → pods of it on nodes."""
    wishes: PreferenceScores = field(init=False)
    workloads: dict[object, int] = field(default_factory=dict)
    """Owner → its number."""
    shared: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Claims that pods share and cannot take apart, with their access mode in words."""

    _whole: bool | None = None

    def __post_init__(self) -> None:
        self.roster = TopologyGroups(Topology(self.inventory.nodes))
        self.wishes = PreferenceScores(self.inventory.nodes, self.roster)
        self.shared = shared(self.inventory)

    def all(self, pods: Iterable[PodInfo]) -> list[PodClass]:
        """The kind of each pod, as they ask now."""
        found: list[PodClass] = []
        last: SchedulingRequirements | None = None
        for pod in pods:
            if pod.claims or pod.devices:
                found.append(self.kind(pod))
                last = None
            else:
                # In the order of their names, replicas come one after the other.
                found.append(found[-1] if pod.ask is last else self.kind(pod))
                last = pod.ask
        self.counted = Counter([kind.number for kind in found])
        return found

    def kind(self, pod: PodInfo, again: Amounts | Unreadable | None = None) -> PodClass:
        """The kind of this pod; made when first seen."""
        ask, claims = pod.ask, pod.claims
        if isinstance(again, Unreadable):
            return self._unplaced(pod, again)
        if not claims and again is None and not pod.devices:
            found = self.known.get(id(ask))
            return found if found is not None else self._make(id(ask), pod, {}, ())
        volumes = [self.inventory.claims.get((pod.namespace, name)) for name in claims]
        devices = self._devices(pod)
        held = devices if isinstance(devices, str) else tuple(sorted(devices.items()))
        name = (id(ask), tuple(sorted((again or {}).items())), tuple(map(id, volumes)), held, claims)
        found = self.known.get(name)
        return found if found is not None else self._make(name, pod, again or {}, volumes)

    def _unplaced(self, pod: PodInfo, why: Unreadable) -> PodClass:
        """Of a pod whose successor nobody can speak for: it asks as now, and is placed nowhere."""
        found = self.known.get((id(pod.ask), why))
        if found is None:
            claims = [self.inventory.claims.get((pod.namespace, name)) for name in pod.claims]
            found = self._make((id(pod.ask), why), pod, {}, claims)
            found.unknown = UNJUDGED(str(why))
        return found

    def _make(self, name: object, pod: PodInfo, again: Amounts, claims: Sequence[Claim | None]) -> PodClass:
        bound = [claim for claim in claims if claim is not None] if claims else ()
        made = PodClass(
            number=len(self.kinds), ask=pod.ask,
            volumes=tuple([c.nodes for c in bound if c.nodes is not None]) if bound else (),
            unknown=self._unknown(pod, claims), workload=self._workload(pod),
        )  # fmt: skip
        asked = {} if isinstance(pod.ask.requests, Unreadable) else pod.ask.requests
        amounts = {k: v for k, v in (larger(asked, again) if again else asked).items() if v > 0 and k != "pods"}
        devices = self._devices(pod)
        amounts |= {} if isinstance(devices, str) else devices
        for claim in bound:
            if claim.driver:
                volume = f"volumes:{claim.driver}"
                amounts[volume] = amounts.get(volume, 0) + 1
        self.amounts.append(amounts)
        self.kinds.append(made)
        self.known[name] = made
        return made

    def _devices(self, pod: PodInfo) -> Claimed:
        """Devices that its claims hold; in words why that cannot be told."""
        return self.inventory.devices.of(pod.namespace, pod.device_claims) if pod.devices else {}

    def _workload(self, pod: PodInfo) -> int:
        owner = pod.owner
        whose = (pod.namespace, owner.kind, owner.name) if owner is not None else id(pod.ask)
        return self.workloads.setdefault(whose, len(self.workloads))

    def _unknown(self, pod: PodInfo, claims: Sequence[Claim | None]) -> Reason | None:
        if self.inventory.schedulers.get(pod.ask.scheduler, SchedulerPlacement.UNKNOWN) is SchedulerPlacement.UNKNOWN:
            return UNJUDGED(
                f"scheduler {pod.ask.scheduler} decides where pod {pod.key} goes, and Trimtab does not know how; if it"
                " filters as kube-scheduler does, say so under schedulers in the pool's settings"
            )
        if pod.devices and isinstance(devices := self._devices(pod), str):
            return UNJUDGED(f"pod {pod.key} holds resource claims that only the scheduler can place: {devices}")
        if isinstance(pod.ask.requests, Unreadable):
            return UNJUDGED(str(pod.ask.requests))
        if speaks_of_copied(pod.ask):
            return UNJUDGED(
                f"a term of pod {pod.key} selects pods by the zone or region that they are given when bound"
            )
        for name, claim in zip(pod.claims, claims, strict=True) if claims else ():
            if claim is None or not claim.volume:
                return UNJUDGED(f"claim {name} of pod {pod.key} or its volume is not in the snapshot")
            if (mode := self.shared.get((pod.namespace, name))) is not None:
                return VOLUME_IN_USE(f"claim {name} ({mode}) of pod {pod.key} is used by another pod")
        return None

    def settle(self, movable: Sequence[PodClass]) -> None:
        """Numbers for everything the kinds speak of; natures only for kinds that may look for a node."""
        self._number_resources()
        self._number_natures(movable)
        for kind in self.kinds:
            if _speaks(kind.ask):
                self._demands(kind)
        for kind in self.kinds:
            own, found = kind.adds, self.roster.belonging(kind.ask.namespace, kind.ask.labels)
            kind.adds = tuple(sorted({*own, *found})) if own else found
        self._bars()
        self.wishes.settle(self.kinds)
        for kind in self.kinds:
            kind.checked = bool(kind.bars or kind.spreads or kind.together)

    # ── resources ────────────────────────────────────────────────────────
    def _number_resources(self) -> None:
        have = {"cpu": 1, "memory": 1}
        by_name = {name: [amounts.get(name, 0) for amounts in self.amounts] for name in have}
        asked = {
            name: sum([amounts[number] * count for number, count in self.counted.items()])
            for name, amounts in by_name.items()
        }
        for node in self.inventory.nodes:
            for name in have:
                have[name] += 0 if isinstance(node.allocatable, Unreadable) else node.allocatable.get(name, 0)
        scarce_cpu = asked["cpu"] * have["memory"] >= asked["memory"] * have["cpu"]
        self.resources = ("cpu", "memory") if scarce_cpu else ("memory", "cpu")
        self.names = tuple(sorted(set[str]().union(*self.amounts) - {"cpu", "memory"}))
        numbers = {name: number for number, name in enumerate(self.names)}
        columns = (by_name[name] for name in self.resources)
        for kind, amounts, major, minor in zip(self.kinds, self.amounts, *columns, strict=True):
            kind.major, kind.minor, kind.rank = major, minor, -(major << 64 | minor)
            if not numbers.keys().isdisjoint(amounts):
                rest = [(numbers[name], amount) for name, amount in amounts.items() if name in numbers]
                kind.rest = tuple(sorted(rest))

    # ── natures ──────────────────────────────────────────────────────────
    def _number_natures(self, movable: Sequence[PodClass]) -> None:
        """`where` of each kind. Nodes that differ in nothing anybody reads are asked once."""
        names = [_nature_name(kind.ask, kind.volumes) for kind in movable]
        choosy = {name: kind for kind, name in zip(movable, names, strict=True) if name}.values()
        keys = sorted({key for kind in choosy for key in node_filters.keys_read(kind.ask, kind.volumes)})
        natures: dict[object, list[int]] = {}
        for number, node in enumerate(self.inventory.nodes):
            seen = tuple(node.name if key == "" else node.labels.get(key) for key in keys)
            natures.setdefault((seen, node.taints), []).append(number)
        known: dict[object, int] = {}
        sets: dict[bytes, int] = {}
        for kind, name in zip(movable, names, strict=True):
            if name not in known:
                admitted = self._admitted(kind.ask, kind.volumes, natures.values())
                known[name] = sets.setdefault(bytes(admitted), len(sets))
                if known[name] == len(self.wheres):
                    self.wheres.append(admitted)
            kind.where = known[name]

    def _admitted(
        self, ask: SchedulingRequirements, volumes: Sequence[NodeSelector], natures: Iterable[list[int]]
    ) -> bytearray:
        admitted = bytearray(len(self.inventory.nodes))
        for numbers in natures:
            if node_filters.objection(ask, volumes, self.inventory.nodes[numbers[0]]) is None:
                for number in numbers:
                    admitted[number] = 1
        return admitted

    # ── groups ───────────────────────────────────────────────────────────
    def _demands(self, kind: PodClass) -> None:
        ask = kind.ask
        if ask.spreads:
            kind.spreads = tuple(self._spread(kind, constraint) for constraint in ask.spreads)
        if ask.together:
            kind.together = self._together(kind)
        held = [self.roster.holding(name, term.topology_key) for name, term in self._apart_terms(kind)]
        held += [self.roster.holding(port, "") for port in ask.ports]
        kind.adds = (*(group.number for group in held), *self.wishes.demand(kind, self._told))

    def _terms(self, kind: PodClass, term: PodAffinityTerm) -> Term | None:
        """The pods a term speaks of; None (and the kind unknown) where that cannot be told."""
        spaces = self._spaces(kind, term)
        if isinstance(spaces, str):
            kind.unknown = kind.unknown or UNJUDGED(spaces)
            return None
        return spaces, self._selector(kind, term)

    def _told(self, kind: PodClass, term: PodAffinityTerm) -> Term | None:
        """The same for a wish, which leaves a pod judged."""
        spaces = self._spaces(kind, term)
        return None if isinstance(spaces, str) else (spaces, self._selector(kind, term))

    def _spaces(self, kind: PodClass, term: PodAffinityTerm) -> Namespaces | str:
        known = self.inventory.namespaces if self._shows_all_namespaces() else {}
        return namespaces_of(kind.ask.namespace, term.namespaces, term.namespace_selector, known)

    def _shows_all_namespaces(self) -> bool:
        """Or else a namespace whose labels nobody knows may be one that a selector means."""
        if self._whole is None:
            self._whole = {pod.namespace for pod in self.inventory.pods} <= self.inventory.namespaces.keys()
        return self._whole

    def _selector(self, kind: PodClass, term: PodAffinityTerm) -> LabelSelector:
        return narrowed(term.label_selector, kind.ask.labels, term.match_label_keys, term.mismatch_label_keys)

    def _apart_terms(self, kind: PodClass) -> Iterable[tuple[object, PodAffinityTerm]]:
        for term in kind.ask.apart:
            found = self._terms(kind, term) or (
                None,
                self._selector(kind, term),
            )  # which namespaces is unknown: it may be any
            spoken = self.roster.speaking_of((found,), term.topology_key, lasting=True)
            asked = self.roster.speaking_of((as_asked(found, term),), term.topology_key, lasting=True)
            kind.bars = (*kind.bars, asked)
            yield spoken.number, term

    def _together(self, kind: PodClass) -> PodAffinityRule:
        found = [self._terms(kind, term) for term in kind.ask.together]
        terms = tuple(term for term in found if term is not None)
        groups = tuple(self.roster.speaking_of(terms, term.topology_key, lasting=False) for term in kind.ask.together)
        if not groups[0].matches(kind.ask.namespace, kind.ask.labels):
            return PodAffinityRule(groups=groups, itself=False, others=())
        wide = tuple(as_asked(f, term) for f, term in zip(found, kind.ask.together, strict=True) if f is not None)
        others = tuple(self.roster.speaking_of(wide, term.topology_key, lasting=True) for term in kind.ask.together)
        return PodAffinityRule(groups=groups, itself=True, others=others)

    def _spread(self, kind: PodClass, constraint: TopologySpreadConstraint) -> SpreadRule:
        ask = kind.ask
        selector = narrowed(constraint.label_selector, ask.labels, constraint.match_label_keys)
        honours = constraint.node_taints_policy == "Honor"
        leaves = honours and not any(node_filters.tolerates(t, node_filters.CORDON) for t in ask.tolerations)
        group = self.roster.speaking_of(
            ((frozenset((ask.namespace,)), selector),), constraint.topology_key, lasting=False,
            eligible=self._eligible(ask, constraint, honours), per_node=leaves,
        )  # fmt: skip
        return SpreadRule(
            group=group, skew=constraint.max_skew, own=int(group.matches(ask.namespace, ask.labels)),
            domains=group.domains,
            fewest=constraint.min_domains if isinstance(constraint.min_domains, int) else 1,
        )  # fmt: skip

    def _eligible(
        self, ask: SchedulingRequirements, constraint: TopologySpreadConstraint, honours: bool
    ) -> bytearray | None:
        """Nodes whose pods and domains count; None where all do (podtopologyspread `matchNodeInclusionPolicies`)."""
        affinity = constraint.node_affinity_policy != "Ignore" and (ask.node_selector or ask.node_affinity is not None)
        keys = {c.topology_key for c in ask.spreads}
        if not affinity and not honours and len(keys) == 1:
            return None
        eligible = bytearray(len(self.inventory.nodes))
        for number, node in enumerate(self.inventory.nodes):
            taints = (*node.taints, node_filters.CORDON) if node.cordoned else node.taints
            eligible[number] = (
                all(key in node.labels for key in keys)
                and (not affinity or node_filters.selected(ask, node))
                and (not honours or node_filters.untolerated(ask.tolerations, taints) is None)
            )
        return eligible

    def _bars(self) -> None:
        """What others hold against a kind: their anti-affinity, their host ports."""
        held = {name[1]: g for name, g in self.roster._made.items() if isinstance(name, tuple) and name[0] == "held"}
        against: dict[int, list[TopologyGroup]] = {}
        ports: dict[tuple[str, int], list[tuple[Port, TopologyGroup]]] = {}
        for what, group in held.items():
            if isinstance(what, int):
                against.setdefault(what, []).append(group)
            elif isinstance(what, tuple) and what[0] != "wish":
                ports.setdefault((what[0], what[2]), []).append((what, group))
        for kind in self.kinds:
            if not (kind.adds or kind.bars or kind.ask.ports):
                continue
            theirs = [group for number in kind.adds for group in against.get(number, ())]
            taken = [
                group
                for port in kind.ask.ports
                for other, group in ports.get((port[0], port[2]), ())
                if port[1] == other[1] or "0.0.0.0" in (port[1], other[1])  # noqa: S104  every address
            ]
            kind.bars = tuple({g.number: g for g in (*kind.bars, *theirs, *taken)}.values())


def _speaks(ask: SchedulingRequirements) -> bool:
    """Does it say anything of other pods, or of ports?"""
    return bool(
        ask.spreads or ask.together or ask.apart or ask.ports or ask.preferred_nodes or ask.near or ask.soft_spreads
    )


def _nature_name(ask: SchedulingRequirements, volumes: Sequence[NodeSelector]) -> object:
    if not (ask.node_selector or ask.tolerations or volumes) and ask.node_affinity is None:
        return ()
    wanted = tuple(sorted(ask.node_selector.items())) if ask.node_selector else ()
    return wanted, ask.node_affinity, ask.tolerations, tuple(volumes)
