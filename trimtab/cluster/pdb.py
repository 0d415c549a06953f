"""PodDisruptionBudgets: how many pods may be unavailable at once, and which pods each budget covers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from trimtab.cluster.api.meta import Labels, LabelSelector, UnsetType, value_or
from trimtab.cluster.api.workload import PodDisruptionBudget
from trimtab.cluster.selectors import candidate_entries, labels_match

OPERATORS = {"In", "NotIn", "Exists", "DoesNotExist"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pdb:
    """A PodDisruptionBudget as its current status describes it."""

    namespace: str
    name: str
    selector: LabelSelector | None
    """The selector of the budget's pods; None selects no pod."""
    allowed: int
    """The number of the budget's pods that may be evicted now."""
    max_allowed: int
    """The number of pods that may be evicted when all of the budget's pods are healthy. With 0, the budget never allows
    an eviction."""
    is_healthy: bool
    """Whether the budget wants at least one healthy pod and has as many as it wants.

    If so, the eviction API evicts pods that are not ready without counting them (registry/core/pod/storage/eviction.go,
    1.36). For a budget that wants no healthy pod, every evicted pod counts."""
    is_stale: bool
    """Whether the disruption controller has not observed the current version of the object yet, so that the numbers are
    out of date."""
    selector_problem: str
    """What is wrong with the selector; empty if it is valid."""
    always_evictable: bool
    """Whether pods that are not healthy may always be evicted (unhealthyPodEvictionPolicy: AlwaysAllow)."""
    min_available: int | str | None = None
    """The number or the percentage of pods that must stay healthy, or None if the budget does not say it so."""
    max_unavailable: int | str | None = None
    """The number or the percentage of pods that may be unavailable, or None if the budget does not say it so."""
    expected: int = 0
    """The number of pods from which the budget's percentages and `max_unavailable` are calculated: the sum of the
    scales of all controllers whose pods the budget selects."""
    healthy: int = 0
    """The number of healthy pods that the budget selects."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    def allows_eviction(self, *, pod_is_ready: bool, spent: int = 0) -> bool:
        """Returns whether the eviction API would evict one of the budget's pods now. `spent`: the number of evictions
        that the budget's status does not count yet."""
        if self.is_stale or self.selector_problem:
            return False
        is_free = not pod_is_ready and (self.always_evictable or self.is_healthy)
        return is_free or self.allowed > spent


def pdb_from_api(shape: PodDisruptionBudget) -> Pdb:
    """Returns the budget that a PodDisruptionBudget object describes."""
    status, selector = shape.status, value_or(shape.spec.selector, None)
    observed_generation = value_or(status.observed_generation, None)
    minimum, maximum = shape.spec.min_available, shape.spec.max_unavailable
    return Pdb(
        namespace=shape.metadata.namespace,
        name=shape.metadata.name,
        selector=selector,
        # The status comes from files, too, where nothing has validated it.
        allowed=max(0, status.disruptions_allowed),
        max_allowed=max(0, status.expected_pods - status.desired_healthy),
        is_healthy=status.current_healthy >= status.desired_healthy > 0,
        # The eviction API refuses with 429 as long as the generation is not observed (eviction.go, 1.36).
        is_stale=observed_generation is None or observed_generation < shape.metadata.generation,
        selector_problem=_selector_problem(selector),
        always_evictable=shape.spec.unhealthy_pod_eviction_policy == "AlwaysAllow",
        min_available=None if isinstance(minimum, UnsetType) else minimum,
        max_unavailable=None if isinstance(maximum, UnsetType) else maximum,
        expected=max(0, status.expected_pods),
        healthy=max(0, status.current_healthy),
    )


def _selector_problem(selector: LabelSelector | None) -> str:
    """Returns what is wrong with a selector, or an empty string if it is valid."""
    for expression in selector.match_expressions if selector else ():
        if expression.operator not in OPERATORS:
            return f"operator {expression.operator!r} is not one of {', '.join(sorted(OPERATORS))}"
        if (expression.operator in ("In", "NotIn")) != bool(expression.values):
            return f"the operator {expression.operator} of {expression.key!r} does not allow its list of values"
    return ""


@dataclass(slots=True)
class PdbIndex:
    """Finds the budgets that cover a pod. Each budget is indexed by one label of its selector, so that a pod is
    compared with few budgets."""

    pdbs: tuple[Pdb, ...]
    by_label: dict[str, dict[str, dict[str, list[int]]]] = field(default_factory=dict)
    """Namespace → (key, value) of one label in the selector's matchLabels → positions of the budgets with this label in
    `pdbs`."""
    by_namespace: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Namespace → positions in `pdbs` of the budgets that are compared with every pod, because their selector has no
    matchLabels or is not valid."""

    @classmethod
    def from_pdbs(cls, budgets: Iterable[Pdb]) -> PdbIndex:
        """Returns an index of these budgets. A budget's number is its position in `budgets`."""
        index = cls(tuple(budgets))
        for number, budget in enumerate(index.pdbs):
            if budget.selector is None:
                continue
            # One label is enough to rule out most pods; `_selects` checks the whole selector.
            label = next(iter(sorted(budget.selector.match_labels.items())), None)
            if label is not None and not budget.selector_problem:
                key, value = label
                by_key = index.by_label.setdefault(budget.namespace, {})
                by_key.setdefault(key, {}).setdefault(value, []).append(number)
            else:
                index.by_namespace[budget.namespace].append(number)
        return index

    def with_statuses(self, budgets: tuple[Pdb, ...]) -> PdbIndex:
        """Returns an index of the same budgets with other statuses, in the same order."""
        return PdbIndex(budgets, self.by_label, self.by_namespace)

    def matching_numbers(self, namespace: str, labels: Labels) -> tuple[int, ...]:
        """Returns the numbers of the budgets that select a pod with these labels. An invalid selector counts as
        selecting every pod, so that its pods are not evicted by mistake."""
        by_label = self.by_label.get(namespace)
        candidates = candidate_entries(by_label, labels) if by_label else []
        candidates += self.by_namespace.get(namespace, ())
        if len(candidates) <= 1:
            return tuple(candidates) if candidates and self._selects(self.pdbs[candidates[0]], labels) else ()
        return tuple(sorted(n for n in candidates if self._selects(self.pdbs[n], labels)))

    @staticmethod
    def _selects(budget: Pdb, labels: Labels) -> bool:
        # A selector that is not valid counts as matching, so that it blocks the pods of its namespace.
        return bool(budget.selector_problem) or (budget.selector is not None and labels_match(budget.selector, labels))
