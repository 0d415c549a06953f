"""Who counts for whom? Pods that a term of somebody's affinity, anti-affinity, spread or host port speaks of.

A `TopologyGroup` counts pods by topology domain. Groups are shared by all pods that speak of the same pods, so that a
move changes a few small numbers and a check reads a few.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.api.meta import Labels, LabelSelector, SelectorRequirement, UnsetType, change, get
from trimtab.cluster.api.pod import PodAffinityTerm
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.selectors import entries_near, labels_match

Namespaces = frozenset[str] | None
"""The namespaces a term speaks of; None is all of them."""
Term = tuple[Namespaces, LabelSelector]
"""Pods of these namespaces that the selector selects."""


@dataclass(slots=True, eq=False)
class TopologyGroup:
    """Pods counted by domain. Counts live in a `FreeCapacity`; this says which pods and which domains."""

    number: int
    terms: tuple[Term, ...]
    """A pod belongs when all of them match; empty where pods belong by what they ask (`holders`, ports)."""
    key: str
    """The topology key; "" is the node itself."""
    domain: Sequence[int]
    """Node → domain, -1 where the node has none (no such label, or not eligible)."""
    domains: int
    """How many domains there are."""
    apart: bool
    """Each domain is one node: what was free of conflict stays so while others only leave."""
    lasting: bool
    """Pods on their way out still count."""
    per_node: bool = False
    """Counts are kept by node: nodes being emptied must be left out (nodeTaintsPolicy Honor)."""
    soft: bool = False
    """Somebody would rather (not) be near these pods; nobody is kept off for them."""

    def matches(self, namespace: str, labels: Labels) -> bool:
        return all(
            (spaces is None or namespace in spaces) and labels_match(selector, labels)
            for spaces, selector in self.terms
        )


@dataclass(slots=True)
class Topology:
    """Domains of nodes by topology key."""

    nodes: Sequence[NodeInfo]
    known: dict[str, tuple[list[int], bool, int]] = field(default_factory=dict)

    def of(self, key: str) -> tuple[list[int], bool, int]:
        """(node → domain or -1, is every domain one node only?, how many domains there are). "" is the node itself."""
        if key == "" and key not in self.known:
            self.known[key] = (list(range(len(self.nodes))), True, len(self.nodes))
        if key not in self.known:
            numbers: dict[str, int] = {}
            domain = [
                -1 if (value := node.labels.get(key)) is None else numbers.setdefault(value, len(numbers))
                for node in self.nodes
            ]
            self.known[key] = (domain, len(numbers) == sum(d >= 0 for d in domain), len(numbers))
        return self.known[key]


@dataclass(slots=True)
class TopologyGroups:
    """All groups, made once each; finds those that a pod belongs to."""

    topology: Topology
    groups: list[TopologyGroup] = field(default_factory=list)
    _made: dict[object, TopologyGroup] = field(default_factory=dict)
    _by_label: dict[str, dict[str, list[TopologyGroup]]] = field(default_factory=lambda: defaultdict(dict))
    """Label key → its value → groups that speak of pods with that label."""
    _loose: list[TopologyGroup] = field(default_factory=list)
    _matched: dict[object, tuple[int, ...]] = field(default_factory=dict)

    def speaking_of(
        self,
        terms: tuple[Term, ...],
        key: str,
        *,
        lasting: bool,
        eligible: bytearray | None = None,
        per_node: bool = False,
        soft: bool = False,
    ) -> TopologyGroup:
        """The group of pods that match all terms; only pods on eligible nodes count."""
        name = (
            tuple(map(_name, terms)),
            key,
            lasting,
            bytes(eligible) if eligible is not None else None,
            per_node,
            soft,
        )
        found = self._made.get(name)
        if found is None:
            found = self._made[name] = self._make(terms, key, lasting, eligible, per_node)
            found.soft = soft
            self._index(found)
        return found

    def holding(self, name: object, key: str, *, soft: bool = False) -> TopologyGroup:
        """The group of pods that carry something themselves: an anti-affinity term, a host port, a wish."""
        found = self._made.get(("held", name, key))
        if found is None:
            found = self._made["held", name, key] = self._make((), key, True, None, False)
            found.soft = soft
        return found

    def _make(
        self, terms: tuple[Term, ...], key: str, lasting: bool, eligible: bytearray | None, per_node: bool
    ) -> TopologyGroup:
        domain, apart, count = self.topology.of(key)
        if eligible is not None:
            domain = [d if eligible[n] else -1 for n, d in enumerate(domain)]
            count = len({d for d in domain if d >= 0})
        made = TopologyGroup(len(self.groups), terms, key, domain, count, apart, lasting, per_node)
        self.groups.append(made)
        return made

    def _index(self, group: TopologyGroup) -> None:
        for _, selector in group.terms:
            pairs = _some_label(selector)
            if pairs:
                for key, value in pairs:
                    self._by_label[key].setdefault(value, []).append(group)
                return
        self._loose.append(group)

    def belonging(self, namespace: str, labels: Labels) -> tuple[int, ...]:
        """Numbers of the groups whose terms match. Ask only when all groups are made."""
        near = entries_near(self._by_label, labels) + self._loose
        if not near:
            return ()
        name = (namespace, tuple(labels.items()))
        found = self._matched.get(name)
        if found is None:
            found = self._matched[name] = tuple(sorted({g.number for g in near if g.matches(namespace, labels)}))
        return found


def _name(term: Term) -> object:
    spaces, selector = term
    return (
        None if spaces is None else tuple(sorted(spaces)),
        tuple(sorted(selector.match_labels.items())),
        selector.match_expressions,
    )


def _some_label(selector: LabelSelector) -> list[tuple[str, str]]:
    """Label pairs of which a matching pod has at least one; empty when none can be told."""
    for pair in selector.match_labels.items():
        return [pair]
    for expression in selector.match_expressions:
        if expression.operator == "In":
            return [(expression.key, value) for value in expression.values]
    return []


NOBODY = LabelSelector(match_expressions=(SelectorRequirement(key="", operator="In", values=()),))
"""A selector that is absent selects nothing (metav1.LabelSelectorAsSelector of nil)."""


def narrowed(
    selector: LabelSelector | UnsetType, labels: Labels, same: Iterable[str], other: Iterable[str] = ()
) -> LabelSelector:
    """With matchLabelKeys and mismatchLabelKeys read off the pod's own labels; keys it lacks say nothing."""
    base = get(selector, NOBODY)
    more = [SelectorRequirement(key=k, operator="In", values=(labels[k],)) for k in same if k in labels]
    more += [SelectorRequirement(key=k, operator="NotIn", values=(labels[k],)) for k in other if k in labels]
    return change(base, match_expressions=(*base.match_expressions, *more)) if more else base


def namespaces_of(
    own: str, names: tuple[str, ...], selector: LabelSelector | UnsetType, known: Mapping[str, Labels]
) -> Namespaces | str:
    """The namespaces an affinity term speaks of; a text when that cannot be told."""
    if isinstance(selector, UnsetType):
        return frozenset(names or (own,))
    if not selector.match_labels and not selector.match_expressions:
        return None
    if not known:
        return "its affinity selects namespaces by label, and the snapshot does not show them all"
    return frozenset(names) | {name for name, labels in known.items() if labels_match(selector, labels)}


def as_asked(term: Term, written: PodAffinityTerm) -> Term:
    """The term as the scheduler reads it of the pod it is placing.

    It then asks the namespace selector of a namespace without labels, too (interpodaffinity, 1.36, measured): one that
    holds there (NotIn, DoesNotExist) speaks of every namespace. Of pods that are placed it reads what is written.
    """
    spaces, selector = term
    asked = get(written.namespace_selector, None)
    return (None if asked is not None and labels_match(asked, {}) else spaces), selector
