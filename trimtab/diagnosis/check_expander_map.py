"""Checks the map of the cluster autoscaler's priority expander: is it read, and does it name every node group?"""

from collections.abc import Iterator, Mapping
from typing import Any

from trimtab.cluster.cluster_autoscaler import Autoscaler, parse_flags
from trimtab.cluster.format_count import format_count, join_first
from trimtab.cluster.reason import Unreadable
from trimtab.diagnosis.finding import Check, DoctorFinding, report_error, report_ok, report_unknown, report_warning
from trimtab.diagnosis.observed import AutoscalerState, ExpanderMapState, ObservedCluster
from trimtab.diagnosis.reasons import (
    EXPANDER_MAP_CHANGED,
    EXPANDER_MAP_INVALID,
    EXPANDER_MAP_UNUSED,
    EXPANDER_MAP_WITHOUT_GROUPS,
)
from trimtab.machines.expander_map import MAP_KEY, MAP_NAME, ExpanderMap, InvalidMap, UnjudgedMap, parse_expander_map
from trimtab.sizing.ranking.demotion import MANAGED_ANNOTATION, MapLeftAlone, update_demotions

_MAX_NAMES = 5


def decode_expander_map(document: Mapping[str, Any]) -> ExpanderMapState:
    """Returns the data and the annotations of the ConfigMap with the expander's priority map."""
    return ExpanderMapState(data=document.get("data") or {}, annotations=document["metadata"].get("annotations") or {})


def check_expander_map(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields whether the autoscaler can use its priority map, and whether a map that Trimtab wrote is unchanged."""
    state = cluster.expander_map
    if isinstance(state, Unreadable):
        yield report_unknown(state)
        return
    if state is None:
        yield report_ok("the cluster autoscaler has no priority map")
        return
    autoscaler = cluster.autoscaler
    if isinstance(autoscaler, Unreadable):
        autoscaler = AutoscalerState(status_report=None)
    expanders = dict.fromkeys(
        parse_flags(arguments).get("expander", "least-waste") for arguments in autoscaler.processes
    )
    if expanders and not any("priority" in expander.split(",") for expander in expanders):
        yield report_warning(EXPANDER_MAP_UNUSED, f"the autoscaler runs with --expander={' and '.join(expanders)}")
    parsed = parse_expander_map(state.data.get(MAP_KEY, ""))
    if isinstance(parsed, InvalidMap):
        yield report_error(EXPANDER_MAP_INVALID, f"the autoscaler ignores the whole map: {parsed.problem}")
        return
    if isinstance(parsed, UnjudgedMap):
        yield report_unknown(
            f"Trimtab cannot predict how the autoscaler reads its priority map: {parsed.problem}",
            f"Rewrite this part of ConfigMap kube-system/{MAP_NAME}.",
        )
        return
    yield from _check_groups(parsed, autoscaler.status_report)
    if MANAGED_ANNOTATION in state.annotations:
        decision = update_demotions(state.data, state.annotations, Autoscaler(), 0)
        if isinstance(decision, MapLeftAlone):
            yield report_warning(EXPANDER_MAP_CHANGED, f"Trimtab leaves its priority map unchanged: {decision.problem}")


def _check_groups(parsed: ExpanderMap, status: Autoscaler | Unreadable | None) -> Iterator[DoctorFinding]:
    groups = status.groups if isinstance(status, Autoscaler) else ()
    unnamed = [group.name for group in groups if parsed.priority_of(group.name) is None]
    if unnamed:
        names = join_first(unnamed, _MAX_NAMES)
        yield report_warning(EXPANDER_MAP_WITHOUT_GROUPS, f"no pattern of the priority map matches {names}")
    else:
        yield report_ok(
            f"the autoscaler can read its priority map, which names all of its "
            f"{format_count(len(groups), 'node group')}"
        )


CHECKS = (
    Check(
        name="priority-map",
        asks="Can the cluster autoscaler use its priority map, and does it name every node group?",
        judge=check_expander_map,
        may=(EXPANDER_MAP_INVALID, EXPANDER_MAP_WITHOUT_GROUPS, EXPANDER_MAP_UNUSED, EXPANDER_MAP_CHANGED),
    ),
)
