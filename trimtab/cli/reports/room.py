"""The report of `trimtab plan --for`: which pods have to move so that others fit, or why there is no room."""

import json
from collections.abc import Iterable, Iterator
from shlex import quote
from typing import Any, ClassVar

from rich.text import Text

from trimtab.cli.output import API_VERSION, ReasonReport, ReportPart, report_reason
from trimtab.cli.reporting.columns import Column, ReportView, Section, number_column
from trimtab.cluster.format_count import format_count, join_first
from trimtab.compaction.plan_types import Move
from trimtab.compaction.room.room_plan import NoRoom, RoomPlan


class RoomPlaceReport(ReportPart, frozen=True, kw_only=True):
    """The node for a pod that wants to run."""

    pod: str
    """The pod, as namespace/name."""
    node: str
    """The node that has room for the pod when the moves are done."""


class RoomMoveReport(ReportPart, frozen=True, kw_only=True):
    """A pod that has to move."""

    pod: str
    """The pod, as namespace/name."""
    source: str
    """The node of the pod."""
    target: str
    """The node that has room for the new pod; the scheduler may choose another node."""
    budget: str | None
    """The PodDisruptionBudget that the eviction counts against; null if none selects the pod."""
    turn: int
    """The number of the group in which the pod is evicted, when the new pods of the previous group are ready."""


class RoomReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab plan --for`. Published as deploy/schemas/room-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab plan --cluster SNAPSHOT --for FILE"
    api_version: str = API_VERSION
    kind: str = "RoomReport"
    is_possible: bool
    """Whether all pods get a place."""
    text: str
    """The answer, as sentences."""
    places: list[RoomPlaceReport]
    """The pods that are to run, each with its node."""
    moves: list[RoomMoveReport]
    """The pods that have to move, in the order of their turns."""
    freed_node: str | None
    """With --for-node-of, the node that has no pods of a workload afterwards; null otherwise."""
    refused: ReasonReport | None
    """Why there is no room, with the node that lacks least; null if there is room."""
    order: list[str]
    """With --as-order, the commands that evict the pods, in the order of their turns. With --for-node-of, those for the
    pods of other nodes, and the command that drains the node."""
    notes: list[str]
    """The assumptions of the answer, one sentence each."""


_NOTE = (
    "the scheduler may give the room to another pod, also to a successor of the evicted ones: create the pods that are "
    "to run first, and give them a higher priority"
)


def build_room_report(
    plan: RoomPlan | NoRoom, wanted: int, notes: tuple[str, ...], *, lists_order: bool = False
) -> RoomReport:
    """Returns the report. `wanted`: the number of pods that want to run; 0 if the cluster refuses them."""
    if isinstance(plan, NoRoom):
        answer = f"There is no room for {format_count(wanted, 'pod')}" if wanted else "The pods cannot be created"
        return _report_no_room(answer, plan, notes)
    moves = format_count(len(plan.moves), "other pod")
    verb = "moves" if len(plan.moves) == 1 else "move"
    return RoomReport(
        is_possible=True,
        text=f"{format_count(wanted, 'pod')} can run "
        + (f"if {moves} {verb}" if plan.moves else "at once, and no other pod has to move"),
        places=[RoomPlaceReport(pod=place.pod, node=place.node) for place in plan.places],
        moves=_report_moves(plan),
        freed_node=None,
        refused=None,
        order=list(_list_commands(plan.moves)) if lists_order else [],
        notes=[*notes, *([_NOTE] if plan.moves else []), *_note_preempted(plan)],
    )


def _note_preempted(plan: RoomPlan) -> Iterator[str]:
    """Yields a note about pods that only keep room free, and that the scheduler preempts."""
    if plan.preempted:
        count, names = format_count(len(plan.preempted), "pod"), join_first(list(plan.preempted), 3)
        yield f"the scheduler preempts {count} of a priority at which they only keep room free: {names}"


def build_node_report(
    plan: RoomPlan | NoRoom, pool: str, notes: tuple[str, ...], *, lists_order: bool = False
) -> RoomReport:
    """Returns the report about a node of this pool that is to be free."""
    if isinstance(plan, NoRoom):
        return _report_no_room(f"No node of pool {pool} can be free", plan, notes)
    count = len(plan.moves)
    moves = f"if {format_count(count, 'pod')} {'moves' if count == 1 else 'move'}" if count else "already"
    return RoomReport(
        is_possible=True,
        text=f"Node {plan.freed_node} of pool {pool} is free of pods of workloads {moves}",
        places=[],
        moves=_report_moves(plan),
        freed_node=plan.freed_node,
        refused=None,
        order=list(_list_drain_commands(plan)) if lists_order and count else [],
        notes=list(notes),
    )


def _report_no_room(answer: str, refusal: NoRoom, notes: tuple[str, ...]) -> RoomReport:
    return RoomReport(
        is_possible=False,
        text=f"{answer}: {refusal.reason}",
        places=[],
        moves=[],
        freed_node=None,
        refused=report_reason(refusal.reason),
        order=[],
        notes=list(notes),
    )


def _report_moves(plan: RoomPlan) -> list[RoomMoveReport]:
    return [
        RoomMoveReport(pod=move.pod, source=move.source, target=move.target, budget=move.budget, turn=move.turn)
        for move in plan.moves
    ]


def _list_drain_commands(plan: RoomPlan) -> Iterator[str]:
    """Yields the commands that evict the pods of other nodes that move aside, and the one that drains the node. The
    drain plans anew when it begins, cordons the node, and obeys budgets and waves; it moves no pods of other nodes."""
    yield from _list_commands([move for move in plan.moves if move.source != plan.freed_node])
    if any(move.source == plan.freed_node for move in plan.moves):
        yield f"trimtab drain {quote(plan.freed_node)}"


def _list_commands(moves: Iterable[Move]) -> Iterator[str]:
    """Yields one command for each eviction, in the order of their turns. The API server asks the budgets."""
    for move in moves:
        namespace, _, name = move.pod.partition("/")
        metadata = {"name": name, "namespace": namespace}
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
        yield f"echo {quote(json.dumps(eviction))} | kubectl create --raw {quote(path)} -f -"


_PLACES: Section[RoomReport, RoomPlaceReport] = Section(
    key="places",
    rows=lambda report: report.places,
    columns=(Column("Pod", lambda row: row.pod), Column("Node", lambda row: row.node)),
    name=lambda row: f"node/{row.node}",
)
_MOVES: Section[RoomReport, RoomMoveReport] = Section(
    key="moves",
    rows=lambda report: report.moves,
    columns=(
        number_column("Turn", lambda row: row.turn + 1, "{}", rank=1),
        Column("Moves", lambda row: row.pod),
        Column("From", lambda row: row.source),
        Column("To", lambda row: row.target),
        Column("Budget", lambda row: row.budget or "–", rank=2),
    ),
)
_ORDER: Section[RoomReport, str] = Section(
    key="order",
    rows=lambda report: report.order,
    columns=(Column("Command", lambda row: row),),
    lines=lambda report: [Text(line, no_wrap=True, overflow="ignore") for line in report.order],
)
_SECTIONS: tuple[Section[RoomReport, Any], ...] = (_PLACES, _MOVES, _ORDER)


VIEW: ReportView[RoomReport] = ReportView(
    title="trimtab plan --for",
    before=lambda report: [Text(report.text, style="bold")],
    sections=_SECTIONS,
    notes=lambda report: report.notes,
)
