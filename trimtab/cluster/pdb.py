"""How many pods may be missing at once, and which pods does that hold for?"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from trimtab.cluster.api.meta import Labels, LabelSelector, get
from trimtab.cluster.api.workload import PodDisruptionBudget
from trimtab.cluster.selectors import entries_near, labels_match

OPERATORS = {"In", "NotIn", "Exists", "DoesNotExist"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pdb:
    """A PodDisruptionBudget as its status tells it now."""

    namespace: str
    name: str
    selector: LabelSelector | None
    """None selects nothing."""
    allowed: int
    """Pods that may be evicted now, all of them together."""
    most: int
    """Pods that may be evicted when all are healthy: 0 is a budget that never allows any."""
    whole: bool
    """As many pods are healthy as it wants, and it wants some: then the eviction API lets an unready pod go and counts
    nothing. A budget that wants none counts every pod (registry/core/pod/storage/eviction.go, 1.36)."""
    stale: bool
    """The controller has not seen the current object: its numbers mean nothing."""
    broken: str
    """What is wrong with its selector; empty when nothing is."""
    always: bool
    """Unhealthy pods may always go (AlwaysAllow)."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


def read(shape: PodDisruptionBudget) -> Pdb:
    status, selector = shape.status, get(shape.spec.selector, None)
    seen = get(status.observed_generation, None)
    return Pdb(
        namespace=shape.metadata.namespace, name=shape.metadata.name, selector=selector,
        allowed=max(0, status.disruptions_allowed), most=max(0, status.expected_pods - status.desired_healthy),
        whole=status.current_healthy >= status.desired_healthy > 0,
        stale=seen is None or seen < shape.metadata.generation, broken=_broken(selector),
        always=shape.spec.unhealthy_pod_eviction_policy == "AlwaysAllow",
    )  # fmt: skip


def _broken(selector: LabelSelector | None) -> str:
    for expression in selector.match_expressions if selector else ():
        if expression.operator not in OPERATORS:
            return f"operator {expression.operator!r} is none of {', '.join(sorted(OPERATORS))}"
        if (expression.operator in ("In", "NotIn")) != bool(expression.values):
            return f"operator {expression.operator} on {expression.key!r} and its values do not go together"
    return ""


@dataclass(slots=True)
class PdbIndex:
    """Which budgets hold for a pod? Indexed by one label each, so that asking is cheap."""

    budgets: tuple[Pdb, ...]
    by_label: dict[str, dict[str, dict[str, list[int]]]] = field(default_factory=dict)
    """Namespace → key and value of one label of the selector → budgets."""
    by_namespace: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, budgets: Iterable[Pdb]) -> "PdbIndex":
        made = cls(tuple(budgets))
        for number, budget in enumerate(made.budgets):
            if budget.selector is None:
                continue
            label = next(iter(sorted(budget.selector.match_labels.items())), None)
            if label is not None and not budget.broken:
                key, value = label
                by_key = made.by_label.setdefault(budget.namespace, {})
                by_key.setdefault(key, {}).setdefault(value, []).append(number)
            else:
                made.by_namespace[budget.namespace].append(number)
        return made

    def over(self, namespace: str, labels: Labels) -> tuple[int, ...]:
        """Numbers of the budgets that select these labels. A broken selector is taken to select all."""
        by_label = self.by_label.get(namespace)
        near = entries_near(by_label, labels) if by_label else []
        near += self.by_namespace.get(namespace, ())
        if not near:
            return ()
        return tuple(sorted(n for n in near if self._selects(self.budgets[n], labels)))

    @staticmethod
    def _selects(budget: Pdb, labels: Labels) -> bool:
        return bool(budget.broken) or (budget.selector is not None and labels_match(budget.selector, labels))
