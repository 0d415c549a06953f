"""Placement preferences: scores for the nodes on which a pod fits. A preference never rejects a node.

Preferences are preferred node affinity, preferred pod affinity and anti-affinity (the pod's own terms, and the terms of
pods on the node that select the pod), and spread constraints with ScheduleAnyway. Scores are the weights in the
manifests.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.api.pod import PodAffinityTerm, PreferredTerm
from trimtab.cluster.node import NodeInfo
from trimtab.scheduling import node_filters
from trimtab.scheduling.pod_class import PlacementPreference, PodClass
from trimtab.scheduling.topology import Term, TopologyGroup, TopologyGroups, apply_match_label_keys

SCHEDULE_ANYWAY_WEIGHT = 10
"""The score that each matching pod in the domain subtracts, for a spread constraint with ScheduleAnyway. It has the
effect of an affinity weight of 10."""

TermOf = Callable[[PodClass, PodAffinityTerm], Term | None]
"""A function that returns the pods that a term selects, or None if the snapshot does not show them."""


@dataclass(slots=True)
class PreferenceScores:
    """Sets the preferences of pod classes, and creates the topology groups to which they refer."""

    nodes: Sequence[NodeInfo]
    topology_groups: TopologyGroups
    _scores_by_terms: dict[tuple[PreferredTerm, ...], tuple[int, ...]] = field(default_factory=dict)
    _carriers: dict[int, dict[int, TopologyGroup]] = field(default_factory=dict)
    """Number of the selected group → weight → the group of pods with a preference of this weight for or against the
    selected pods."""

    def set_own_preferences(self, pod_class: PodClass, term_of: TermOf) -> Iterable[int]:
        """Sets the class's own preferences. Yields the numbers of the groups to which the class belongs because it has
        a preference."""
        ask = pod_class.ask
        if not (ask.preferred_nodes or ask.preferred_affinity or ask.soft_spreads):
            return
        groups: list[tuple[TopologyGroup, int]] = []
        for weight, term in ask.preferred_affinity:
            selected = term_of(pod_class, term)
            if selected is not None and weight:
                selected_group = self.topology_groups.group_selecting(
                    (selected,), term.topology_key, lasting=True, soft=True
                )
                groups.append((selected_group, weight))
                by_weight = self._carriers.setdefault(selected_group.number, {})
                if weight not in by_weight:
                    by_weight[weight] = self.topology_groups.group_carrying(
                        ("preference", selected_group.number, weight), term.topology_key, soft=True
                    )
                yield by_weight[weight].number
        for spread in ask.soft_spreads:
            selector = apply_match_label_keys(spread.label_selector, ask.labels, spread.match_label_keys)
            selected_pods = ((frozenset((ask.namespace,)), selector),)
            groups.append(
                (
                    self.topology_groups.group_selecting(selected_pods, spread.topology_key, lasting=False, soft=True),
                    -SCHEDULE_ANYWAY_WEIGHT,
                )
            )
        pod_class.preference = PlacementPreference(
            node_scores=self._node_scores(ask.preferred_nodes), group_weights=tuple(groups)
        )

    def _node_scores(self, terms: tuple[PreferredTerm, ...]) -> tuple[int, ...]:
        if not terms:
            return ()
        if terms not in self._scores_by_terms:
            self._scores_by_terms[terms] = tuple(
                sum(term.weight for term in terms if node_filters.matches_preferred_term(term.preference, node))
                for node in self.nodes
            )
        return self._scores_by_terms[terms]

    def add_preferences_of_others(self, classes: Iterable[PodClass]) -> None:
        """Adds to each class the preferences that other pods have for or against it. Call it when all classes have
        their groups."""
        if not self._carriers:
            return
        for pod_class in classes:
            theirs = tuple(
                # interpodaffinity scores both directions: also the preferred terms of pods on the node that select the
                # incoming pod.
                (group, weight)
                for number in pod_class.member_groups
                for weight, group in self._carriers.get(number, {}).items()
            )
            if theirs:
                own = pod_class.preference or PlacementPreference(node_scores=(), group_weights=())
                pod_class.preference = PlacementPreference(
                    node_scores=own.node_scores, group_weights=(*own.group_weights, *theirs)
                )


def preference_score(preference: PlacementPreference, counts: Sequence[dict[int, int]], node: int) -> int:
    """Returns the node's score with the current group counts. A higher score is better; it is 0 if the pod has no
    preference."""
    score = preference.node_scores[node] if preference.node_scores else 0
    for group, weight in preference.group_weights:
        domain = group.domain_of[node]
        if domain >= 0:
            score += weight * counts[group.number].get(domain, 0)
    return score
