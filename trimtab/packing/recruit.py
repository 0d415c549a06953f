"""How does a pod become a kind?

Kinds are made as pods come; `settle` then numbers resources, natures and groups, when all that is spoken of is known.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.api.meta import LabelSelector
from trimtab.cluster.api.pod import NodeSelector, PodAffinityTerm, TopologySpreadConstraint
from trimtab.cluster.claim import Claim
from trimtab.cluster.inventory import Inventory
from trimtab.cluster.pod import Ask, Pod, Port
from trimtab.cluster.reason import Reason, Unreadable
from trimtab.cluster.resources import Amounts, larger
from trimtab.packing import nature
from trimtab.packing.copied import speaks_of_copied
from trimtab.packing.groups import Group, Namespaces, Roster, Term, Topology, as_asked, namespaces_of, narrowed
from trimtab.packing.held import shared
from trimtab.packing.kinds import Kind, Spread, Together
from trimtab.packing.reasons import UNJUDGED, VOLUME_IN_USE
from trimtab.packing.wishes import Wishes

SCHEDULER = "default-scheduler"


@dataclass(slots=True)
class Recruiter:
    inventory: Inventory
    kinds: list[Kind] = field(default_factory=list)
    amounts: list[Amounts] = field(default_factory=list)
    """Kind → everything it asks for, volumes to attach included."""
    known: dict[object, Kind] = field(default_factory=dict)
    roster: Roster = field(init=False)
    wheres: list[bytearray] = field(default_factory=list)
    resources: tuple[str, str] = ("cpu", "memory")
    names: tuple[str, ...] = ()
    counted: Mapping[int, int] = field(default_factory=dict)
    """Kind → pods of it on nodes."""
    wishes: Wishes = field(init=False)
    workloads: dict[object, int] = field(default_factory=dict)
    """Owner → its number."""
    shared: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Claims that pods share and cannot take apart, with their access mode in words."""

    _whole: bool | None = None

    def __post_init__(self) -> None:
        self.roster = Roster(Topology(self.inventory.nodes))
        self.wishes = Wishes(self.inventory.nodes, self.roster)
        self.shared = shared(self.inventory)

    def all(self, pods: Iterable[Pod]) -> list[Kind]:
        """The kind of each pod, as they ask now."""
        known, found = self.known, []
        for pod in pods:
            kind = known.get(id(pod.ask)) if not pod.claims and not pod.devices else None
            found.append(kind if kind is not None else self.kind(pod))
        self.counted = Counter([kind.number for kind in found])
        return found

    def kind(self, pod: Pod, again: Amounts | Unreadable | None = None) -> Kind:
        """The kind of this pod; made when first seen."""
        ask, claims = pod.ask, pod.claims
        if isinstance(again, Unreadable):
            return self._unplaced(pod, again)
        if not claims and again is None and not pod.devices:
            found = self.known.get(id(ask))
            return found if found is not None else self._make(id(ask), pod, {}, ())
        volumes = [self.inventory.claims.get((pod.namespace, name)) for name in claims]
        name = (id(ask), tuple(sorted((again or {}).items())), tuple(map(id, volumes)), pod.devices, claims)
        found = self.known.get(name)
        return found if found is not None else self._make(name, pod, again or {}, volumes)

    def _unplaced(self, pod: Pod, why: Unreadable) -> Kind:
        """Of a pod whose successor nobody can speak for: it asks as now, and is placed nowhere."""
        found = self.known.get((id(pod.ask), why))
        if found is None:
            claims = [self.inventory.claims.get((pod.namespace, name)) for name in pod.claims]
            found = self._make((id(pod.ask), why), pod, {}, claims)
            found.unknown = UNJUDGED(str(why))
        return found

    def _make(self, name: object, pod: Pod, again: Amounts, claims: Sequence[Claim | None]) -> Kind:
        bound = [claim for claim in claims if claim is not None]
        made = Kind(
            number=len(self.kinds), ask=pod.ask, volumes=tuple([c.nodes for c in bound if c.nodes is not None]),
            unknown=self._unknown(pod, claims), workload=self._workload(pod),
        )  # fmt: skip
        asked = {} if isinstance(pod.ask.requests, Unreadable) else pod.ask.requests
        amounts = {k: v for k, v in (larger(asked, again) if again else asked).items() if v > 0 and k != "pods"}
        for volume in [f"volumes:{claim.driver}" for claim in bound if claim.driver]:
            amounts[volume] = amounts.get(volume, 0) + 1
        self.amounts.append(amounts)
        self.kinds.append(made)
        self.known[name] = made
        return made

    def _workload(self, pod: Pod) -> int:
        owner = pod.owner
        whose = (pod.namespace, owner.kind, owner.name) if owner is not None else id(pod.ask)
        return self.workloads.setdefault(whose, len(self.workloads))

    def _unknown(self, pod: Pod, claims: Sequence[Claim | None]) -> Reason | None:
        if pod.ask.scheduler != SCHEDULER:
            return UNJUDGED(f"another scheduler ({pod.ask.scheduler}) decides where pod {pod.key} goes")
        if pod.devices:
            return UNJUDGED(f"pod {pod.key} holds resource claims, which only the scheduler can place")
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

    def settle(self, movable: Sequence[Kind]) -> None:
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
        asked = {"cpu": 0, "memory": 0}
        have = {"cpu": 1, "memory": 1}
        names: set[str] = set()
        for amounts in self.amounts:
            names.update(amounts)
        for number, count in self.counted.items():
            amounts = self.amounts[number]
            for name in asked:
                asked[name] += amounts.get(name, 0) * count
        for node in self.inventory.nodes:
            for name in have:
                have[name] += 0 if isinstance(node.allocatable, Unreadable) else node.allocatable.get(name, 0)
        scarce_cpu = asked["cpu"] * have["memory"] >= asked["memory"] * have["cpu"]
        self.resources = ("cpu", "memory") if scarce_cpu else ("memory", "cpu")
        self.names = tuple(sorted(names - {"cpu", "memory"}))
        numbers = {name: number for number, name in enumerate(self.names)}
        major, minor = self.resources
        for kind, amounts in zip(self.kinds, self.amounts, strict=True):
            kind.major, kind.minor = amounts.get(major, 0), amounts.get(minor, 0)
            kind.rank = -(kind.major << 64 | kind.minor)
            rest = amounts.keys() & numbers.keys()
            if rest:
                kind.rest = tuple(sorted((numbers[name], amounts[name]) for name in rest))

    # ── natures ──────────────────────────────────────────────────────────
    def _number_natures(self, movable: Sequence[Kind]) -> None:
        """`where` of each kind. Nodes that differ in nothing anybody reads are asked once."""
        keys = sorted({key for kind in movable for key in nature.keys_read(kind.ask, kind.volumes)})
        natures: dict[object, list[int]] = {}
        for number, node in enumerate(self.inventory.nodes):
            seen = tuple(node.name if key == "" else node.labels.get(key) for key in keys)
            natures.setdefault((seen, node.taints), []).append(number)
        known: dict[object, int] = {}
        sets: dict[bytes, int] = {}
        for kind in movable:
            name = _nature_name(kind.ask, kind.volumes)
            if name not in known:
                admitted = self._admitted(kind.ask, kind.volumes, natures.values())
                known[name] = sets.setdefault(bytes(admitted), len(sets))
                if known[name] == len(self.wheres):
                    self.wheres.append(admitted)
            kind.where = known[name]

    def _admitted(self, ask: Ask, volumes: Sequence[NodeSelector], natures: Iterable[list[int]]) -> bytearray:
        admitted = bytearray(len(self.inventory.nodes))
        for numbers in natures:
            if nature.objection(ask, volumes, self.inventory.nodes[numbers[0]]) is None:
                for number in numbers:
                    admitted[number] = 1
        return admitted

    # ── groups ───────────────────────────────────────────────────────────
    def _demands(self, kind: Kind) -> None:
        ask = kind.ask
        if ask.spreads:
            kind.spreads = tuple(self._spread(kind, constraint) for constraint in ask.spreads)
        if ask.together:
            kind.together = self._together(kind)
        held = [self.roster.holding(name, term.topology_key) for name, term in self._apart_terms(kind)]
        held += [self.roster.holding(port, "") for port in ask.ports]
        kind.adds = (*(group.number for group in held), *self.wishes.demand(kind, self._told))

    def _terms(self, kind: Kind, term: PodAffinityTerm) -> Term | None:
        """The pods a term speaks of; None (and the kind unknown) where that cannot be told."""
        spaces = self._spaces(kind, term)
        if isinstance(spaces, str):
            kind.unknown = kind.unknown or UNJUDGED(spaces)
            return None
        return spaces, self._selector(kind, term)

    def _told(self, kind: Kind, term: PodAffinityTerm) -> Term | None:
        """The same for a wish, which leaves a pod judged."""
        spaces = self._spaces(kind, term)
        return None if isinstance(spaces, str) else (spaces, self._selector(kind, term))

    def _spaces(self, kind: Kind, term: PodAffinityTerm) -> Namespaces | str:
        known = self.inventory.namespaces if self._shows_all_namespaces() else {}
        return namespaces_of(kind.ask.namespace, term.namespaces, term.namespace_selector, known)

    def _shows_all_namespaces(self) -> bool:
        """Or else a namespace whose labels nobody knows may be one that a selector means."""
        if self._whole is None:
            self._whole = {pod.namespace for pod in self.inventory.pods} <= self.inventory.namespaces.keys()
        return self._whole

    def _selector(self, kind: Kind, term: PodAffinityTerm) -> LabelSelector:
        return narrowed(term.label_selector, kind.ask.labels, term.match_label_keys, term.mismatch_label_keys)

    def _apart_terms(self, kind: Kind) -> Iterable[tuple[object, PodAffinityTerm]]:
        for term in kind.ask.apart:
            found = self._terms(kind, term) or (
                None,
                self._selector(kind, term),
            )  # which namespaces is unknown: it may be any
            spoken = self.roster.speaking_of((found,), term.topology_key, lasting=True)
            asked = self.roster.speaking_of((as_asked(found, term),), term.topology_key, lasting=True)
            kind.bars = (*kind.bars, asked)
            yield spoken.number, term

    def _together(self, kind: Kind) -> Together:
        found = [self._terms(kind, term) for term in kind.ask.together]
        terms = tuple(term for term in found if term is not None)
        groups = tuple(self.roster.speaking_of(terms, term.topology_key, lasting=False) for term in kind.ask.together)
        if not groups[0].matches(kind.ask.namespace, kind.ask.labels):
            return Together(groups=groups, itself=False, others=())
        wide = tuple(as_asked(f, term) for f, term in zip(found, kind.ask.together, strict=True) if f is not None)
        others = tuple(self.roster.speaking_of(wide, term.topology_key, lasting=True) for term in kind.ask.together)
        return Together(groups=groups, itself=True, others=others)

    def _spread(self, kind: Kind, constraint: TopologySpreadConstraint) -> Spread:
        ask = kind.ask
        selector = narrowed(constraint.label_selector, ask.labels, constraint.match_label_keys)
        honours = constraint.node_taints_policy == "Honor"
        leaves = honours and not any(nature.tolerates(t, nature.CORDON) for t in ask.tolerations)
        group = self.roster.speaking_of(
            ((frozenset((ask.namespace,)), selector),), constraint.topology_key, lasting=False,
            eligible=self._eligible(ask, constraint, honours), per_node=leaves,
        )  # fmt: skip
        return Spread(
            group=group, skew=constraint.max_skew, own=int(group.matches(ask.namespace, ask.labels)),
            domains=group.domains,
            fewest=constraint.min_domains if isinstance(constraint.min_domains, int) else 1,
        )  # fmt: skip

    def _eligible(self, ask: Ask, constraint: TopologySpreadConstraint, honours: bool) -> bytearray | None:
        """Nodes whose pods and domains count; None where all do (podtopologyspread `matchNodeInclusionPolicies`)."""
        affinity = constraint.node_affinity_policy != "Ignore" and (ask.node_selector or ask.node_affinity is not None)
        keys = {c.topology_key for c in ask.spreads}
        if not affinity and not honours and len(keys) == 1:
            return None
        eligible = bytearray(len(self.inventory.nodes))
        for number, node in enumerate(self.inventory.nodes):
            taints = (*node.taints, nature.CORDON) if node.cordoned else node.taints
            eligible[number] = (
                all(key in node.labels for key in keys)
                and (not affinity or nature.selected(ask, node))
                and (not honours or nature.untolerated(ask.tolerations, taints) is None)
            )
        return eligible

    def _bars(self) -> None:
        """What others hold against a kind: their anti-affinity, their host ports."""
        held = {name[1]: g for name, g in self.roster._made.items() if isinstance(name, tuple) and name[0] == "held"}
        against: dict[int, list[Group]] = {}
        ports: dict[tuple[str, int], list[tuple[Port, Group]]] = {}
        for what, group in held.items():
            if isinstance(what, int):
                against.setdefault(what, []).append(group)
            elif isinstance(what, tuple) and what[0] != "wish":
                ports.setdefault((what[0], what[2]), []).append((what, group))
        for kind in self.kinds:
            theirs = [group for number in kind.adds for group in against.get(number, ())]
            taken = [
                group
                for port in kind.ask.ports
                for other, group in ports.get((port[0], port[2]), ())
                if port[1] == other[1] or "0.0.0.0" in (port[1], other[1])  # noqa: S104  every address
            ]
            kind.bars = tuple({g.number: g for g in (*kind.bars, *theirs, *taken)}.values())


def _speaks(ask: Ask) -> bool:
    """Does it say anything of other pods, or of ports?"""
    return bool(
        ask.spreads or ask.together or ask.apart or ask.ports or ask.preferred_nodes or ask.near or ask.soft_spreads
    )


def _nature_name(ask: Ask, volumes: Sequence[NodeSelector]) -> object:
    return (
        tuple(sorted(ask.node_selector.items())), ask.node_affinity, ask.tolerations, tuple(volumes),
    )  # fmt: skip
