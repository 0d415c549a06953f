"""Is this the usage of one cluster?

A Thanos or Mimir holds many clusters, and two of them may have pods of the same names: what they use must never become
one history. So more than one value of a label that tells clusters apart is refused, unless a matcher names the label.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trimtab.usage.errors import UsageFault

LABELS = ("cluster", "cluster_name", "k8s_cluster_name", "prometheus", "tenant", "tenant_id", "__tenant_id__")
"""Labels that tell clusters apart: external labels by custom, the Prometheus Operator's, OpenTelemetry's, tenants."""
Origin = tuple[tuple[str, str], ...]
"""The labels of a series that tell clusters apart, with their values."""
UNLABELLED = ""
"""The value of a label that some series do not have while others do."""
_MOST_VALUES = 10
"""Values that a message names."""


@dataclass(frozen=True, slots=True)
class Mixed:
    """A label with more than one value."""

    label: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        named = [f'"{value}"' if value else "series without the label" for value in self.values[:_MOST_VALUES]]
        more = f" and {len(self.values) - _MOST_VALUES} more" if len(self.values) > _MOST_VALUES else ""
        return f"{self.label}: {', '.join(named)}{more}"

    @property
    def example(self) -> str:
        """A matcher that selects one of the values."""
        return f'{self.label}="{escaped(next((value for value in self.values if value), ""))}"'


class MixedClusters(UsageFault):
    """The source holds the usage of more than one cluster, and nothing says which one is wanted."""

    def __init__(self, source: str, found: tuple[Mixed, ...]) -> None:
        told = "; ".join(map(str, found))
        super().__init__(
            f"{source}: the usage of more than one cluster ({told}). Choose one with a matcher such as "
            f"{found[0].example} (--matcher, or the setting TRIMTAB_RECOMMENDER_PROMETHEUS_MATCHER)"
        )
        self.found = found


class NoMatcher(ValueError):
    """The text is no list of matchers."""


_MATCHER = re.compile(
    r"""\s*([A-Za-z_]\w*)\s*(=~|!~|!=|=)\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')\s*(?:,|$)""", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Matchers:
    """Conditions on labels in PromQL's form: cluster="prod",tenant!="a"."""

    all: tuple[tuple[str, str, str], ...] = ()
    """(label, operator, value)."""

    @classmethod
    def of(cls, text: str) -> Matchers:
        """The conditions of a text. Raises NoMatcher."""
        found, at = [], 0
        while at < len(text.rstrip()):
            match = _MATCHER.match(text, at)
            if match is None:
                raise NoMatcher('conditions such as cluster="prod",namespace!~"test-.*"')
            label, operator, double, single = match.groups()
            value = single if double is None else double
            value = re.sub(r"\\(.)", r"\1", value) if operator in ("=", "!=") else value.replace("\\\\", "\\")
            if operator in ("=~", "!~"):
                _compiled(value)
            found.append((label, operator, value))
            at = match.end()
        return cls(tuple(found))

    @property
    def labels(self) -> frozenset[str]:
        """The labels that a condition names."""
        return frozenset(label for label, _, _ in self.all)

    def allow(self, labels: Mapping[str, str]) -> bool:
        """Whether a series with these labels meets every condition; a label that it lacks is empty."""
        return all(_meets(labels.get(label, ""), operator, value) for label, operator, value in self.all)


def escaped(value: str) -> str:
    """The value as it stands between quotes in PromQL."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise NoMatcher(f"a regular expression instead of {pattern!r}: {error}") from None


def _meets(have: str, operator: str, value: str) -> bool:
    if operator in ("=", "!="):
        return (have == value) is (operator == "=")
    return bool(_compiled(value).fullmatch(have)) is (operator == "=~")


@dataclass(slots=True)
class Origins:
    """Which values of the labels that tell clusters apart were seen, series by series."""

    chosen: frozenset[str] = frozenset()
    """Labels that a matcher names, or that the report is divided by: their values may differ."""
    values: dict[str, set[str]] = field(default_factory=dict)
    _series: int = 0
    _counts: dict[str, int] = field(default_factory=dict)

    def see(self, origin: Origin) -> None:
        """One series."""
        self._series += 1
        for label, value in origin:
            self.values.setdefault(label, set()).add(value)
            self._counts[label] = self._counts.get(label, 0) + 1

    def mixed(self) -> tuple[Mixed, ...]:
        """Labels with more than one value, in order of name; a label that some series lack has one value more."""
        found = {
            label: values | ({UNLABELLED} if self._counts[label] < self._series else set())
            for label, values in self.values.items()
            if label not in self.chosen
        }
        return mixed(found)


def mixed(values: Mapping[str, Iterable[str]]) -> tuple[Mixed, ...]:
    """Those of the labels that have more than one value."""
    found = ((label, tuple(sorted(set(each)))) for label, each in sorted(values.items()))
    return tuple(Mixed(label, each) for label, each in found if len(each) > 1)
