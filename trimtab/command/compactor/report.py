"""The reports of `trimtab compactor status` and `history`."""

from trimtab.command.output import API_VERSION
from trimtab.command.why import Part


class DrainReport(Part, frozen=True, kw_only=True):
    """A node with our note."""

    node: str
    pool: str
    drain: str
    phase: str
    """emptying, emptied, unreadable, or whose it is where a compactor of another namespace wrote the note."""
    since: str
    """RFC 3339."""
    pods_left: int
    pods: int


class PoolStatus(Part, frozen=True, kw_only=True):
    name: str
    mode: str
    """act, rehearse, off; or gone where only its state is left."""
    closed: bool
    """By failures; `resume --pool` opens it."""
    strikes: int
    evictions_last_hour: int
    evictions_per_hour: int | None
    saved_nodes: int
    """Taken by the autoscaler after we emptied them, ever."""
    next: list[str]
    """Nodes the last plan would empty, in order."""
    planned_at: str | None
    """Since when that is the plan."""
    waits_for: str
    """What has to be before the next one begins; empty where nothing has to."""


class StatusReport(Part, frozen=True, kw_only=True):
    """Published as deploy/schemas/compactor-status-report.schema.json."""

    api_version: str = API_VERSION
    kind: str = "CompactorStatusReport"
    paused: str
    """Why everything stands still; empty where it does not."""
    leader: str
    """The replica that leads; empty where none does."""
    pools: list[PoolStatus]
    drains: list[DrainReport]
    mistakes: list[str]
    """Of the pools' ConfigMaps."""


class RecordReport(Part, frozen=True, kw_only=True):
    at: str
    pool: str
    what: str
    code: str
    why: str
    node: str
    pod: str
    drain: str
    rehearsed: bool


class HistoryReport(Part, frozen=True, kw_only=True):
    """Published as deploy/schemas/compactor-history-report.schema.json."""

    api_version: str = API_VERSION
    kind: str = "CompactorHistoryReport"
    records: list[RecordReport]
    """The oldest first."""
