"""The map of the cluster autoscaler's priority expander: read, matched and replayed as the autoscaler does it.

The ConfigMap `cluster-autoscaler-priority-expander` has one key, `priorities`, with YAML: priority → list of patterns.
The autoscaler reads it before every decision (expander/priority/priority.go, 1.36). A pattern may match any part of the
id of a node group. Of the groups that match, those with the highest priority remain; a priority below 0 never wins. A
group that no pattern matches is left out, unless no group matches: then all remain. If the map is not valid, it is
ignored as a whole, and all groups remain.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import yaml

from trimtab.machines.go_regexp import InvalidPattern, UnjudgedPattern, compile_go_regexp, quote_group_name

MAP_NAME, MAP_KEY = "cluster-autoscaler-priority-expander", "priorities"
CATCH_ALL = ".*"
CATCH_ALL_PRIORITY, LEGACY_PRIORITY, DEMOTED_PRIORITY = 0, 1, 2
FIRST_PRIORITY, PRIORITY_STEP = 100, 10
MAX_TIERS = 9
"""The maximum number of priorities, from `FIRST_PRIORITY` down to `PRIORITY_STEP * 2`. All further groups share the
last one."""
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]{0,17})")


@dataclass(frozen=True, slots=True)
class InvalidMap:
    """The map is not valid: the autoscaler ignores it and writes the Event PriorityConfigMapInvalid."""

    problem: str


@dataclass(frozen=True, slots=True)
class UnjudgedMap:
    """The map may be valid, but Trimtab cannot determine how the autoscaler reads it."""

    problem: str


@dataclass(frozen=True, slots=True)
class ExpanderMap:
    """A valid priority map of the cluster autoscaler."""

    rules: Mapping[int, tuple[re.Pattern[str], ...]]
    """Priority → compiled patterns."""
    texts: Mapping[int, tuple[str, ...]]
    """Priority → the patterns as they are written."""

    def priority_of(self, group: str) -> int | None:
        """Returns the highest priority with a pattern that matches the group, or None if no pattern does."""
        return max(
            (priority for priority, patterns in self.rules.items() if any(one.search(group) for one in patterns)),
            default=None,
        )

    def best_groups(self, groups: Sequence[str]) -> tuple[str, ...]:
        """Returns the groups that the expander keeps, of those that could help a pending pod. The next expander chooses
        among them."""
        rated = [(group, priority) for group in groups if (priority := self.priority_of(group)) is not None]
        best = max((priority for _, priority in rated if priority >= 0), default=None)
        if best is None:
            return tuple(groups)
        return tuple(group for group, priority in rated if priority == best)


def parse_expander_map(text: str) -> ExpanderMap | InvalidMap | UnjudgedMap:
    """Returns the map as the autoscaler reads it (gopkg.in/yaml.v2 into map[int][]string, then Go's regexp)."""
    if not text:
        return InvalidMap("the priority map is empty")
    try:
        documents = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.composer.ComposerError as error:
        return UnjudgedMap(f"Trimtab does not resolve anchors and aliases of YAML in the map: {error}")
    except yaml.YAMLError as error:
        return InvalidMap(f"the priority map is not valid YAML: {error}")
    except (ValueError, RecursionError) as error:
        return UnjudgedMap(str(error))
    if len(documents) > 1:
        return UnjudgedMap("the priority map has more than one YAML document")
    if not documents or documents[0] is None:
        return ExpanderMap({}, {})
    node = documents[0]
    if not isinstance(node, yaml.MappingNode):
        is_null = isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")
        return ExpanderMap({}, {}) if is_null else InvalidMap("the map is not a mapping of priorities to lists")
    texts: dict[int, tuple[str, ...]] = {}
    unjudged = ""
    for key, value in node.value:
        number = _read_priority(key)
        patterns = _read_patterns(value)
        for part in (number, patterns):
            if isinstance(part, InvalidMap):
                return part
            unjudged = unjudged or (part.problem if isinstance(part, UnjudgedMap) else "")
        if isinstance(number, int) and isinstance(patterns, tuple):
            texts[number] = patterns
    if unjudged:
        return UnjudgedMap(unjudged)
    return _compile_rules(texts)


def _read_priority(node: yaml.Node) -> int | InvalidMap | UnjudgedMap:
    if not isinstance(node, yaml.ScalarNode):
        return InvalidMap("a priority is not a number")
    if node.tag.endswith(":int") and node.style is None and _DECIMAL.fullmatch(node.value):
        return int(node.value)
    if node.tag.endswith(":str") and not any(char.isdigit() for char in node.value) and node.value != "<<":
        return InvalidMap(f"the priority {node.value!r} is not a number")
    return UnjudgedMap(f"the priority {node.value!r}, which is not a plain number")


def _read_patterns(node: yaml.Node) -> tuple[str, ...] | InvalidMap | UnjudgedMap:
    if isinstance(node, yaml.ScalarNode):
        is_null = node.tag.endswith(":null")
        return (
            UnjudgedMap("the list of patterns of a priority is missing")
            if is_null
            else InvalidMap("a pattern is not in a list")
        )
    if not isinstance(node, yaml.SequenceNode):
        return InvalidMap("the patterns of a priority are not a list")
    patterns: list[str] = []
    for item in node.value:
        if not isinstance(item, yaml.ScalarNode):
            return InvalidMap("a pattern is not text")
        if not item.tag.endswith(":str"):
            return UnjudgedMap(f"the pattern {item.value!r}, which is not in quotes")
        patterns.append(item.value)
    return tuple(patterns)


def _compile_rules(texts: Mapping[int, tuple[str, ...]]) -> ExpanderMap | InvalidMap | UnjudgedMap:
    rules: dict[int, tuple[re.Pattern[str], ...]] = {}
    unjudged = ""
    for priority, patterns in texts.items():
        compiled = [compile_go_regexp(pattern) for pattern in patterns]
        for pattern, result in zip(patterns, compiled, strict=True):
            if isinstance(result, InvalidPattern):
                return InvalidMap(f"the pattern {pattern!r} of priority {priority}: {result.problem}")
            if isinstance(result, UnjudgedPattern):
                unjudged = unjudged or f"the pattern {pattern!r} of priority {priority}: {result.construct}"
        rules[priority] = tuple(one for one in compiled if isinstance(one, re.Pattern))
    return UnjudgedMap(unjudged) if unjudged else ExpanderMap(rules, texts)


def build_priorities(tiers: Sequence[Sequence[str]], legacy: Iterable[str] = ()) -> dict[int, list[str]]:
    """Returns priority → patterns for node groups: the tiers from the best one down, then legacy groups, then a
    catch-all for groups that are not named. A legacy group must be in no tier."""
    legacy_names = list(legacy)
    priorities: dict[int, list[str]] = {}
    kept = [names for tier in tiers if (names := [name for name in tier if name not in legacy_names])]
    for number, names in enumerate(kept):
        priority = FIRST_PRIORITY - PRIORITY_STEP * min(number, MAX_TIERS - 1)
        priorities.setdefault(priority, []).extend(map(quote_group_name, names))
    if legacy_names:
        priorities[LEGACY_PRIORITY] = [quote_group_name(name) for name in legacy_names]
    priorities[CATCH_ALL_PRIORITY] = [CATCH_ALL]
    return priorities


def demote_groups(priorities: Mapping[int, Sequence[str]], groups: Iterable[str]) -> dict[int, list[str]]:
    """Returns the priorities with these groups moved to `DEMOTED_PRIORITY`, which is below all tiers and above legacy
    groups.

    A group is moved only if the map names it exactly, with a priority above `DEMOTED_PRIORITY`.
    """
    patterns = {quote_group_name(name) for name in groups}
    demoted: dict[int, list[str]] = {}
    moved: list[str] = []
    for priority, written in sorted(priorities.items(), reverse=True):
        is_above = priority > DEMOTED_PRIORITY
        kept = [pattern for pattern in written if not (is_above and pattern in patterns)]
        moved += [pattern for pattern in written if is_above and pattern in patterns]
        if kept:
            demoted[priority] = kept
    if moved:
        demoted[DEMOTED_PRIORITY] = [*demoted.get(DEMOTED_PRIORITY, ()), *moved]
    return demoted


def format_priorities(priorities: Mapping[int, Sequence[str]]) -> str:
    """Returns the YAML text of the key `priorities`, with the highest priority first and every pattern in quotes."""
    lines = []
    for priority, patterns in sorted(priorities.items(), reverse=True):
        lines.append(f"{priority}:")
        lines += ["  - '" + pattern.replace("'", "''") + "'" for pattern in patterns]
    return "\n".join(lines) + "\n"


def replay_priorities(text: str, expected: Mapping[str, int]) -> list[str]:
    """Returns the mistakes of a map: that it cannot be used, or each group that does not get its expected priority. An
    empty list if there is none.

    The map is parsed and matched as the autoscaler does it.
    """
    parsed = parse_expander_map(text)
    if not isinstance(parsed, ExpanderMap):
        return [f"the priority map cannot be used: {parsed.problem}"]
    priorities = {group: parsed.priority_of(group) for group in expected}
    return [
        f"node group {group} would have the priority {priorities[group]}, not {priority}"
        for group, priority in expected.items()
        if priorities[group] != priority
    ]
