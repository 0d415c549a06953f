"""kubectl's options that select objects: `-n/--namespace`, `-A/--all-namespaces` and `-l/--selector`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from trimtab.cluster import selectors
from trimtab.cluster.api.meta import SelectorRequirement
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.selectors import requirement_matches
from trimtab.inputs.command_faults import UsageError, check_namespaces
from trimtab.inputs.flags import ALL_NAMESPACES, NAMESPACE, SELECTOR


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceOptions:
    """The options that select namespaces."""

    namespaces: Annotated[tuple[str, ...], NAMESPACE] = ()
    all_namespaces: Annotated[bool, ALL_NAMESPACES] = False

    def parse(self) -> ObjectSelection:
        """Returns the selection."""
        return parse_selection(self.namespaces, None, all_namespaces=self.all_namespaces)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionOptions:
    """The options that select objects by namespace and by label."""

    selector: Annotated[str | None, SELECTOR] = None
    by_namespace: NamespaceOptions = NamespaceOptions()

    def parse(self) -> ObjectSelection:
        """Returns the selection. Raises UsageError for an invalid selector."""
        within = self.by_namespace
        return parse_selection(within.namespaces, self.selector, all_namespaces=within.all_namespaces)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSelection:
    """The filters for the objects of a report. An empty field selects all objects."""

    namespaces: frozenset[str] = frozenset()
    labels: tuple[SelectorRequirement, ...] = ()

    def includes(self, namespace: str, labels: Mapping[str, str] | None = None) -> bool:
        """Returns whether both the namespace and the labels of the object are selected."""
        if self.namespaces and namespace not in self.namespaces:
            return False
        return all(requirement_matches(requirement, labels or {}) for requirement in self.labels)

    def check_namespaces(self, choices: Iterable[str]) -> None:
        """Raise UsageError for each selected namespace that is not among the `choices`, with the nearest name."""
        check_namespaces(self.namespaces, choices)

    @property
    def is_everything(self) -> bool:
        """Whether the selection contains all objects."""
        return not self.namespaces and not self.labels


def list_namespaces(objects: Iterable[Mapping[str, Any]]) -> set[str]:
    """Returns the namespaces of these objects of the API, and those that are objects themselves."""
    metadata = [(item.get("kind"), item.get("metadata") or {}) for item in objects]
    names = {str(one.get("name") if kind == "Namespace" else one.get("namespace") or "") for kind, one in metadata}
    return names - {""}


def parse_selection(
    namespaces: tuple[str, ...], selector: str | None, *, all_namespaces: bool = False
) -> ObjectSelection:
    """Returns the selection that the options describe. Raises UsageError for an invalid selector."""
    try:
        labels = selectors.parse(selector) if selector else ()
    except ValueError as error:
        raise UsageError([ConfigError(file="--selector", expected=str(error), got=repr(selector))]) from None
    # As with kubectl, -A counts even if a namespace is named.
    return ObjectSelection(namespaces=frozenset(() if all_namespaces else namespaces), labels=labels)
