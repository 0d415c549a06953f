"""Where would a pod rather be? Preferences steer the choice among places that fit; they keep a pod off nowhere.

What people wrote: preferred node affinity, preferred pod affinity and anti-affinity (the pod's own terms, and those
of pods that are there towards it), spread constraints that say ScheduleAnyway. Points are the weights as written.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.api.pod import PodAffinityTerm, PreferredTerm
from trimtab.cluster.node import NodeInfo
from trimtab.scheduling import node_filters
from trimtab.scheduling.pod_class import PlacementPreference, PodClass
from trimtab.scheduling.topology import Term, TopologyGroup, TopologyGroups, narrowed

CROWDED = 10
"""Points off for each pod of a ScheduleAnyway spread that is in the domain already: a written weight of ten."""

TermOf = Callable[[PodClass, PodAffinityTerm], Term | None]
"""The pods a term speaks of; None where the snapshot does not tell."""


@dataclass(slots=True)
class PreferenceScores:
    """Makes the wishes of kinds; the groups they speak of are made in the roster."""

    nodes: Sequence[NodeInfo]
    roster: TopologyGroups
    _static: dict[tuple[PreferredTerm, ...], tuple[int, ...]] = field(default_factory=dict)
    _held: dict[int, dict[int, TopologyGroup]] = field(default_factory=dict)
    """Group spoken of → weight → the group of pods that have this wish about it."""

    def demand(self, kind: PodClass, term_of: TermOf) -> Iterable[int]:
        """Gives the kind its own wishes. Yields groups the kind counts in because it carries a wish."""
        ask = kind.ask
        if not (ask.preferred_nodes or ask.near or ask.soft_spreads):
            return
        groups: list[tuple[TopologyGroup, int]] = []
        for weight, term in ask.near:
            found = term_of(kind, term)
            if found is not None and weight:
                spoken = self.roster.speaking_of((found,), term.topology_key, lasting=True, soft=True)
                groups.append((spoken, weight))
                yield self._holding(spoken, weight, term.topology_key)
        for spread in ask.soft_spreads:
            selector = narrowed(spread.label_selector, ask.labels, spread.match_label_keys)
            same = ((frozenset((ask.namespace,)), selector),)
            groups.append((self.roster.speaking_of(same, spread.topology_key, lasting=False, soft=True), -CROWDED))
        kind.wish = PlacementPreference(nodes=self._points(ask.preferred_nodes), groups=tuple(groups))

    def _holding(self, spoken: TopologyGroup, weight: int, key: str) -> int:
        by_weight = self._held.setdefault(spoken.number, {})
        if weight not in by_weight:
            by_weight[weight] = self.roster.holding(("wish", spoken.number, weight), key, soft=True)
        return by_weight[weight].number

    def _points(self, terms: tuple[PreferredTerm, ...]) -> tuple[int, ...]:
        if not terms:
            return ()
        if terms not in self._static:
            self._static[terms] = tuple(
                sum(term.weight for term in terms if node_filters.preferred(term.preference, node))
                for node in self.nodes
            )
        return self._static[terms]

    def settle(self, kinds: Iterable[PodClass]) -> None:
        """What others wish of a kind. Ask when all kinds know the groups they count in."""
        if not self._held:
            return
        for kind in kinds:
            theirs = tuple(
                (group, weight) for number in kind.adds for weight, group in self._held.get(number, {}).items()
            )
            if theirs:
                own = kind.wish or PlacementPreference(nodes=(), groups=())
                kind.wish = PlacementPreference(nodes=own.nodes, groups=(*own.groups, *theirs))


def points(wish: PlacementPreference, counts: Sequence[dict[int, int]], node: int) -> int:
    """How gladly it would be there, with groups counted as they are now. More is better; 0 where it does not care."""
    found = wish.nodes[node] if wish.nodes else 0
    for group, weight in wish.groups:
        domain = group.domain[node]
        if domain >= 0:
            found += weight * counts[group.number].get(domain, 0)
    return found
