"""Topology groups: which pods an affinity, anti-affinity, spread or host port counts, and in which domain.

A `TopologyGroup` counts pods by topology domain. All pods whose terms select the same pods share one group, so a move
changes only a few numbers, and a check reads only a few.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.api.meta import Labels, LabelSelector, SelectorRequirement, UnsetType, change, value_or
from trimtab.cluster.api.pod import PodAffinityTerm
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.selectors import candidate_entries, labels_match

Namespaces = frozenset[str] | None
"""The namespaces that a term selects; None: all namespaces."""
Term = tuple[Namespaces, LabelSelector]
"""The pods of these namespaces that match the selector."""


@dataclass(slots=True, eq=False)
class TopologyGroup:
    """A group of pods that are counted by domain. It defines the pods and the domains; the counts are in a
    `FreeCapacity`."""

    number: int
    terms: tuple[Term, ...]
    """A pod belongs to the group if all of these terms match it. Empty if the group consists of the pods that have a
    particular anti-affinity term, host port or preference themselves."""
    key: str
    """The topology key; "" means that each node is a domain."""
    domain_of: Sequence[int]
    """Node → domain; -1 if the node has none, because it lacks the label or is not eligible."""
    domain_count: int
    """The number of domains."""
    is_per_node_domain: bool
    """Whether each domain is a single node. Pods that leave other nodes then cannot cause a conflict on a node."""
    counts_deleted: bool
    """Whether pods with a deletion timestamp still count."""
    is_counted_per_node: bool = False
    """Whether pods are counted by node instead of by domain, because nodes that are being drained must be left out
    (nodeTaintsPolicy Honor)."""
    is_preference_only: bool = False
    """Whether only preferences refer to the group, so that it rejects no node."""

    def matches_pod(self, namespace: str, labels: Labels) -> bool:
        """Returns whether a pod of this namespace, with these labels, belongs to the group."""
        return all(
            (namespaces is None or namespace in namespaces) and labels_match(selector, labels)
            for namespaces, selector in self.terms
        )


@dataclass(slots=True)
class Topology:
    """The domains of the nodes by topology key."""

    nodes: Sequence[NodeInfo]
    domains_by_key: dict[str, tuple[list[int], bool, int]] = field(default_factory=dict)

    def domains_of(self, key: str) -> tuple[list[int], bool, int]:
        """Returns (node → domain or -1, whether every domain is a single node, the number of domains) for a topology
        key; for "", each node is a domain."""
        # Host ports are counted by node whatever its labels: kubernetes.io/hostname need not be unique.
        if key == "" and key not in self.domains_by_key:
            self.domains_by_key[key] = (list(range(len(self.nodes))), True, len(self.nodes))
        if key not in self.domains_by_key:
            numbers: dict[str, int] = {}
            domain = [
                -1 if (value := node.labels.get(key)) is None else numbers.setdefault(value, len(numbers))
                for node in self.nodes
            ]
            self.domains_by_key[key] = (domain, len(numbers) == sum(d >= 0 for d in domain), len(numbers))
        return self.domains_by_key[key]


@dataclass(slots=True)
class TopologyGroups:
    """All topology groups, each created once. Finds the groups to which a pod belongs."""

    topology: Topology
    groups: list[TopologyGroup] = field(default_factory=list)
    _groups: dict[object, TopologyGroup] = field(default_factory=dict)
    _by_label: dict[str, dict[str, list[TopologyGroup]]] = field(default_factory=lambda: defaultdict(dict))
    """Label key → value → the groups that select pods with this label."""
    _groups_without_label: list[TopologyGroup] = field(default_factory=list)
    _numbers_by_labels: dict[object, tuple[int, ...]] = field(default_factory=dict)

    def group_selecting(
        self,
        terms: tuple[Term, ...],
        key: str,
        *,
        lasting: bool,
        eligible: bytearray | None = None,
        per_node: bool = False,
        soft: bool = False,
    ) -> TopologyGroup:
        """Returns the group of the pods that match all terms, counted by the topology key `key`.

        `lasting`: whether pods with a deletion timestamp still count. `eligible`: the nodes whose pods count; None
        means all."""
        group_key = (
            tuple(map(_term_key, terms)),
            key,
            lasting,
            bytes(eligible) if eligible is not None else None,
            per_node,
            soft,
        )
        group = self._groups.get(group_key)
        if group is None:
            group = self._groups[group_key] = self._create(terms, key, lasting, eligible, per_node)
            group.is_preference_only = soft
            self._index(group)
        return group

    def group_carrying(self, carried: object, key: str, *, soft: bool = False) -> TopologyGroup:
        """Returns the group of the pods that have `carried` in their own spec: an anti-affinity term, a host port, or a
        preference."""
        group = self._groups.get(("carried", carried, key))
        if group is None:
            group = self._groups["carried", carried, key] = self._create((), key, True, None, False)
            group.is_preference_only = soft
        return group

    def _create(
        self, terms: tuple[Term, ...], key: str, lasting: bool, eligible: bytearray | None, per_node: bool
    ) -> TopologyGroup:
        domain, apart, count = self.topology.domains_of(key)
        if eligible is not None:
            domain = [d if eligible[n] else -1 for n, d in enumerate(domain)]
            count = len({d for d in domain if d >= 0})
        group = TopologyGroup(len(self.groups), terms, key, domain, count, apart, lasting, per_node)
        self.groups.append(group)
        return group

    def _index(self, group: TopologyGroup) -> None:
        # One selective label is enough for a lookup: the groups of a pod are found by its labels, without a test of
        # every group.
        for _, selector in group.terms:
            pairs = _required_label_pairs(selector)
            if pairs:
                for key, value in pairs:
                    self._by_label[key].setdefault(value, []).append(group)
                return
        self._groups_without_label.append(group)

    def groups_matching(self, namespace: str, labels: Labels) -> tuple[int, ...]:
        """Returns the numbers of the groups whose terms match a pod of this namespace with these labels. Call it when
        all groups exist."""
        candidates = candidate_entries(self._by_label, labels) + self._groups_without_label
        if not candidates:
            return ()
        key = (namespace, tuple(labels.items()))
        numbers = self._numbers_by_labels.get(key)
        if numbers is None:
            numbers = self._numbers_by_labels[key] = tuple(
                sorted({g.number for g in candidates if g.matches_pod(namespace, labels)})
            )
        return numbers


def _term_key(term: Term) -> object:
    namespaces, selector = term
    return (
        None if namespaces is None else tuple(sorted(namespaces)),
        tuple(sorted(selector.match_labels.items())),
        selector.match_expressions,
    )


def _required_label_pairs(selector: LabelSelector) -> list[tuple[str, str]]:
    """Returns (key, value) pairs of labels; every pod that matches the selector has at least one of them. An empty list
    if none can be derived."""
    for pair in selector.match_labels.items():
        return [pair]
    for expression in selector.match_expressions:
        if expression.operator == "In":
            return [(expression.key, value) for value in expression.values]
    return []


SELECTS_NOTHING = LabelSelector(match_expressions=(SelectorRequirement(key="", operator="In", values=()),))
"""Stands for an absent selector, which selects nothing (metav1.LabelSelectorAsSelector of nil)."""


def apply_match_label_keys(
    selector: LabelSelector | UnsetType, labels: Labels, match_keys: Iterable[str], mismatch_keys: Iterable[str] = ()
) -> LabelSelector:
    """Returns the selector with matchLabelKeys and mismatchLabelKeys replaced by requirements on the pod's own values.
    Keys that the pod lacks are ignored."""
    resolved = value_or(selector, SELECTS_NOTHING)
    requirements = [SelectorRequirement(key=k, operator="In", values=(labels[k],)) for k in match_keys if k in labels]
    requirements += [
        SelectorRequirement(key=k, operator="NotIn", values=(labels[k],)) for k in mismatch_keys if k in labels
    ]
    return (
        change(resolved, match_expressions=(*resolved.match_expressions, *requirements)) if requirements else resolved
    )


def resolve_namespaces(
    own: str, names: tuple[str, ...], selector: LabelSelector | UnsetType, labels_by_namespace: Mapping[str, Labels]
) -> Namespaces | str:
    """Returns the namespaces that an affinity term selects (None: all), or a text that says why they cannot be
    determined.

    `own`: the namespace of the pod. `names`, `selector`: the fields `namespaces` and `namespaceSelector` of the term.
    """
    if isinstance(selector, UnsetType):
        return frozenset(names or (own,))
    if not selector.match_labels and not selector.match_expressions:
        return None
    if not labels_by_namespace:
        return "the pod's affinity selects namespaces by label, but the snapshot does not contain all namespaces"
    return frozenset(names) | {name for name, labels in labels_by_namespace.items() if labels_match(selector, labels)}


def as_scheduler_reads(term: Term, affinity_term: PodAffinityTerm) -> Term:
    """Returns the term as kube-scheduler reads it for the pod that is being placed.

    For that pod, kube-scheduler also evaluates the namespace selector against a namespace without labels
    (interpodaffinity, 1.36, measured): a selector that matches this (NotIn, DoesNotExist) selects every namespace. For
    pods that are on nodes already, it reads the term as written.
    """
    namespaces, selector = term
    namespace_selector = value_or(affinity_term.namespace_selector, None)
    return (None if namespace_selector is not None and labels_match(namespace_selector, {}) else namespaces), selector
