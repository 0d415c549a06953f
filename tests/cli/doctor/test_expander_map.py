"""What the doctor says of the autoscaler's priority map."""

from dataclasses import replace

import pytest

from tests.cli.doctor.worlds import NOW, WELL
from trimtab.cluster.cluster_autoscaler import Autoscaler, NodeGroupStatus
from trimtab.cluster.reason import Unreadable
from trimtab.diagnosis.check_expander_map import check_expander_map, decode_expander_map
from trimtab.diagnosis.observed import AutoscalerState, ExpanderMapState
from trimtab.machines.expander_map import MAP_KEY
from trimtab.sizing.ranking.demotion import MANAGED_ANNOTATION, record_demotions

WHOLE = "100:\n  - '^a$'\n0:\n  - '.*'\n"
GROUPS = tuple(NodeGroupStatus(name=name, healthy=True, scale_up="NoActivity") for name in ("a", "b"))


def codes(state: ExpanderMapState | Unreadable | None, **flags: str) -> list[str]:
    status = Autoscaler(groups=GROUPS, updated=int(NOW.timestamp()))
    arguments = tuple(f"--{name}={text}" for name, text in flags.items())
    autoscaler = AutoscalerState(status_report=status, processes=(arguments,) if flags else ())
    cluster = replace(WELL, expander_map=state, autoscaler=autoscaler)
    return [finding.reason.code.name for finding in check_expander_map(cluster)]


def written(text: str, **annotations: str) -> ExpanderMapState:
    return decode_expander_map({"metadata": {"annotations": annotations}, "data": {MAP_KEY: text}})


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (None, ["no-problem-found"]),
        (written(WHOLE), ["no-problem-found"]),
        (written("100: [a"), ["priority-map-invalid"]),
        (written(""), ["priority-map-invalid"]),
        (written("100:\n  - '^a$'\n"), ["priority-map-without-groups"]),
        (written("0x10:\n  - a\n"), ["not-checked"]),
        (Unreadable("the map", "forbidden"), ["not-checked"]),
    ],
)
def test_a_map_that_the_autoscaler_reads_and_that_names_every_group_is_well(
    state: ExpanderMapState | Unreadable | None, expected: list[str]
) -> None:
    assert codes(state) == expected


def test_an_autoscaler_that_does_not_ask_for_priorities_is_named() -> None:
    assert codes(written(WHOLE), expander="least-waste")[0] == "priority-map-not-used"
    assert codes(written(WHOLE), expander="priority,least-waste") == ["no-problem-found"]


def test_trimtabs_own_map_is_recognized_until_another_client_changes_it() -> None:
    notes = {MANAGED_ANNOTATION: "machines-priorities", **record_demotions(WHOLE, {})}
    assert codes(ExpanderMapState(data={MAP_KEY: WHOLE}, annotations=notes)) == ["no-problem-found"]
    changed = ExpanderMapState(data={MAP_KEY: WHOLE.replace("^a$", "^b$")}, annotations=notes)
    assert codes(changed) == ["no-problem-found", "priority-map-changed"]
