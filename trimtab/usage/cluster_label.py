"""Rejects usage of more than one cluster.

A Thanos or Mimir holds the usage of many clusters, and two of them may have pods of the same names, whose usage must
not become one history. So if a label that distinguishes clusters has more than one value, the usage is rejected, unless
a matcher names that label.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trimtab.usage.errors import UsageFault

LABELS = ("cluster", "cluster_name", "k8s_cluster_name", "prometheus", "tenant", "tenant_id", "__tenant_id__")
"""The labels that distinguish clusters: customary external labels, those of the Prometheus Operator and of
OpenTelemetry, and tenants."""
Origin = tuple[tuple[str, str], ...]
"""The labels of a series that distinguish clusters, with their values."""
UNLABELLED = ""
"""The value that is used for a label which a series lacks and other series have."""
_MAX_NAMED_VALUES = 10
"""How many values a message lists at most."""


@dataclass(frozen=True, slots=True)
class Mixed:
    """A label that distinguishes clusters and has more than one value."""

    label: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        quoted_values = [
            f'"{value}"' if value else "series without the label" for value in self.values[:_MAX_NAMED_VALUES]
        ]
        more = f" and {len(self.values) - _MAX_NAMED_VALUES} more" if len(self.values) > _MAX_NAMED_VALUES else ""
        return f"{self.label}: {', '.join(quoted_values)}{more}"

    @property
    def example_matcher(self) -> str:
        """A matcher that selects one of the values, as an example for a message."""
        return f'{self.label}="{escape_value(next((value for value in self.values if value), ""))}"'


class MixedClusters(UsageFault):
    """Raised when the source holds the usage of more than one cluster and no matcher selects one."""

    def __init__(self, source: str, mixed_labels: tuple[Mixed, ...]) -> None:
        sentence = "; ".join(map(str, mixed_labels))
        super().__init__(
            f"{source} has the usage of more than one cluster ({sentence}). Choose one cluster with a matcher "
            f"such as {mixed_labels[0].example_matcher} (--matcher, or the setting "
            "TRIMTAB_RECOMMENDER_PROMETHEUS_MATCHER)"
        )
        self.mixed_labels = mixed_labels


class NoMatcher(ValueError):
    """Raised for a text that is not a list of matchers."""


_MATCHER = re.compile(
    r"""\s*([A-Za-z_]\w*)\s*(=~|!~|!=|=)\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')\s*(?:,|$)""", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Matchers:
    """Conditions on labels, in the syntax of PromQL: cluster="prod",tenant!="a"."""

    conditions: tuple[tuple[str, str, str], ...] = ()
    """The conditions, each as (label, operator, value)."""

    @classmethod
    def from_text(cls, text: str) -> Matchers:
        """Returns the conditions of a text. Raises NoMatcher."""
        conditions, position = [], 0
        while position < len(text.rstrip()):
            match = _MATCHER.match(text, position)
            if match is None:
                raise NoMatcher('conditions such as cluster="prod",namespace!~"test-.*"')
            label, operator, double, single = match.groups()
            value = single if double is None else double
            # In a regular expression an escape such as \. belongs to the pattern; only the string's own backslashes are
            # undone.
            value = re.sub(r"\\(.)", r"\1", value) if operator in ("=", "!=") else value.replace("\\\\", "\\")
            if operator in ("=~", "!~"):
                _compile_pattern(value)
            conditions.append((label, operator, value))
            position = match.end()
        return cls(tuple(conditions))

    @property
    def matched_labels(self) -> frozenset[str]:
        """The labels that a condition names."""
        return frozenset(label for label, _, _ in self.conditions)

    def matches_labels(self, labels: Mapping[str, str]) -> bool:
        """Returns whether a series with these labels satisfies every condition. A label that the series lacks counts as
        empty."""
        return all(
            _meets_condition(labels.get(label, ""), operator, value) for label, operator, value in self.conditions
        )


def escape_value(value: str) -> str:
    """Returns the value as it is written between quotes in PromQL."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _compile_pattern(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise NoMatcher(f"a regular expression instead of {pattern!r}: {error}") from None


def _meets_condition(actual: str, operator: str, value: str) -> bool:
    if operator in ("=", "!="):
        return (actual == value) is (operator == "=")
    return bool(_compile_pattern(value).fullmatch(actual)) is (operator == "=~")


@dataclass(slots=True)
class Origins:
    """The values observed so far of the labels that distinguish clusters."""

    allowed_labels: frozenset[str] = frozenset()
    """Labels that may have several values, because a matcher names them or because the report is divided by their
    values."""
    values: dict[str, set[str]] = field(default_factory=dict)
    _series: int = 0
    _counts: dict[str, int] = field(default_factory=dict)

    def add_series(self, origin: Origin) -> None:
        """Adds the origin of one series."""
        self._series += 1
        for label, value in origin:
            self.values.setdefault(label, set()).add(value)
            self._counts[label] = self._counts.get(label, 0) + 1

    def mixed_labels(self) -> tuple[Mixed, ...]:
        """Returns the labels with more than one value, sorted by name. A label that only some series have counts the
        empty value as one more."""
        values_by_label = {
            label: values | ({UNLABELLED} if self._counts[label] < self._series else set())
            for label, values in self.values.items()
            if label not in self.allowed_labels
        }
        return find_mixed_labels(values_by_label)


def find_mixed_labels(values: Mapping[str, Iterable[str]]) -> tuple[Mixed, ...]:
    """Returns the labels that have more than one value, sorted by name."""
    sorted_values = ((label, tuple(sorted(set(label_values)))) for label, label_values in sorted(values.items()))
    return tuple(Mixed(label, label_values) for label, label_values in sorted_values if len(label_values) > 1)
