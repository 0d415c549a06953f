"""A priority map for the cluster autoscaler's expander, in which a node group comes last for an hour if the cloud has
no nodes for it. Such a group is called demoted.

The map that `trimtab machines priorities --apply` writes is the base. It is kept in an annotation of the ConfigMap,
together with the time until which each group is demoted, so that the base can be restored even if the recommender
restarts. If the map's text is not the result of the base and these times, another client has changed it, and it is left
as it is.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trimtab.cluster.cluster_autoscaler import Autoscaler, NodeGroupStatus
from trimtab.cluster.timestamps import Seconds
from trimtab.machines.expander_map import (
    CATCH_ALL,
    DEMOTED_PRIORITY,
    MAP_KEY,
    ExpanderMap,
    demote_groups,
    format_priorities,
    parse_expander_map,
    replay_priorities,
)
from trimtab.machines.go_regexp import quote_group_name

DEMOTION_SECONDS = 3600
"""How long a group stays demoted, in seconds, after it was last observed to have no nodes."""
OUT_OF_STOCK = "Backoff"
"""The scale-up state of a group whose last scale-up failed."""

MANAGED_ANNOTATION = "trimtab.dev/managed"
"""The annotation on a priority map that Trimtab wrote."""
BASE_ANNOTATION = "trimtab.dev/base-priorities"
"""The annotation with the map as it is without demotions."""
DEMOTIONS_ANNOTATION = "trimtab.dev/demoted-until"
"""The annotation with JSON: group → time, in seconds since 1970, until which it is demoted."""
MAX_TEXT_BYTES = 200_000
"""The size limit of the map and of each annotation, in bytes. The API server allows 256 KiB for all annotations of an
object."""
MAX_DEMOTIONS = 1000


@dataclass(frozen=True, slots=True)
class MapLeftAlone:
    """The map is not changed, for this reason."""

    problem: str
    is_expected: bool = False
    """Whether this is normal, because there is no map, or none that Trimtab wrote."""


@dataclass(frozen=True, slots=True)
class DemotedMap:
    """The priority map as it should be now."""

    text: str
    annotations: Mapping[str, str]
    """The two annotations with the base and the demotions."""
    demotions: Mapping[str, Seconds] = field(default_factory=dict)
    """Group → the time until which it is demoted."""
    is_changed: bool = False
    """Whether the map differs from the present one and must be written."""


def record_demotions(base: str, demotions: Mapping[str, Seconds]) -> dict[str, str]:
    """Returns the two annotations with the base and the demotions."""
    return {BASE_ANNOTATION: base, DEMOTIONS_ANNOTATION: json.dumps(dict(sorted(demotions.items())))}


def update_demotions(
    data: Mapping[str, str], annotations: Mapping[str, str], autoscaler: Autoscaler, now: Seconds
) -> DemotedMap | MapLeftAlone:
    """Returns the priority map as it should be now. Groups in Backoff are demoted for an hour from now, and groups
    whose hour is over get their priority back.

    `data` and `annotations` are those of the ConfigMap. A group is demoted only if the base gives it a priority above
    `DEMOTED_PRIORITY`. If the autoscaler is silent, no group is demoted, because its status may be old; earlier
    demotions still end.
    """
    if MANAGED_ANNOTATION not in annotations:
        return MapLeftAlone("Trimtab did not write the priority map", is_expected=True)
    text = data.get(MAP_KEY, "")
    base = annotations.get(BASE_ANNOTATION, text)
    if max(len(text.encode()), len(base.encode())) > MAX_TEXT_BYTES:
        return MapLeftAlone(f"the priority map has more than {MAX_TEXT_BYTES} bytes")
    recorded = _read_demotions(annotations.get(DEMOTIONS_ANNOTATION, "{}"))
    if recorded is None:
        return MapLeftAlone(f"the annotation {DEMOTIONS_ANNOTATION} of the priority map is not valid")
    parsed = parse_expander_map(base)
    if not isinstance(parsed, ExpanderMap):
        return MapLeftAlone(f"the autoscaler would not use the priority map as intended: {parsed.problem}")
    foreign = next((one for written in parsed.texts.values() for one in written if not is_exact_pattern(one)), None)
    if foreign is not None:
        # A pattern of another client may take very long to match; those of Trimtab do not.
        return MapLeftAlone(f"Trimtab did not write the pattern {foreign[:80]!r} of the priority map")
    if text != format_priorities(demote_groups(parsed.texts, recorded)):
        return MapLeftAlone(
            "another client changed the priority map; `trimtab machines priorities --apply` writes it again"
        )
    groups = () if autoscaler.is_silent(now) else autoscaler.groups
    named = {group.name for group in groups if _is_named(parsed, group.name)}
    demotions = find_out_of_stock([group for group in groups if group.name in named], recorded, now)
    # An hour that begins anew at every look would be a write at every look: it begins anew when half of it is over.
    demotions = {
        name: recorded[name] if recorded.get(name, 0) > now + DEMOTION_SECONDS / 2 else until
        for name, until in list(demotions.items())[:MAX_DEMOTIONS]
    }
    changed = format_priorities(demote_groups(parsed.texts, demotions))
    problems = replay_priorities(changed, dict.fromkeys(demotions, DEMOTED_PRIORITY))
    if problems:
        return MapLeftAlone(problems[0])
    return DemotedMap(
        text=changed,
        annotations=record_demotions(base, demotions),
        demotions=demotions,
        is_changed=changed != text or demotions != recorded,
    )


def find_out_of_stock(
    groups: Iterable[NodeGroupStatus], demotions: Mapping[str, Seconds], now: Seconds
) -> dict[str, Seconds]:
    """Returns group → the time until which the group is demoted: an hour from now for a group in Backoff, and the
    remaining time for earlier demotions.

    While a group is demoted, the expander chooses another group. Without the demotion, it would choose the same group
    again whenever the autoscaler's own Backoff ends.
    """
    lasting = {name: until for name, until in demotions.items() if until > now}
    return lasting | {group.name: now + DEMOTION_SECONDS for group in groups if group.scale_up == OUT_OF_STOCK}


def is_exact_pattern(pattern: str) -> bool:
    """Returns whether the pattern, in the form that Trimtab writes, matches exactly one name, or is the catch-all."""
    name = re.sub(r"\\(.)", r"\1", pattern[1:-1], flags=re.DOTALL)
    return pattern == CATCH_ALL or pattern == quote_group_name(name)


def _is_named(base: ExpanderMap, group: str) -> bool:
    pattern = quote_group_name(group)
    return any(pattern in written for priority, written in base.texts.items() if priority > DEMOTED_PRIORITY)


def _read_demotions(text: str) -> dict[str, Seconds] | None:
    if len(text.encode()) > MAX_TEXT_BYTES:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or len(value) > MAX_DEMOTIONS:
        return None
    times = value.values()
    return value if all(isinstance(time, int | float) and not isinstance(time, bool) for time in times) else None
