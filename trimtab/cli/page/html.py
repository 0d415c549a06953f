"""Renders a plan or a simulation as one HTML page: its parts as values, the template, and its inline SVG pictures.

Pools are drawn as blocks: a square per node in a large cluster, a line per node in a small one. The colours of the
pictures are CSS classes of the page.
"""

import hashlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from math import fsum

from jinja2 import Environment
from markupsafe import Markup

from trimtab.cli.page.before_after import Change, draw_changes
from trimtab.cli.page.style import page_style
from trimtab.cli.reports.node_costs import Fill, NodeReport, Saving, format_saving
from trimtab.cli.reports.plan import StayReport
from trimtab.cli.reports.plan_table import group_by_code
from trimtab.cluster.format_count import format_count

MAX_LINES = 60
"""The largest number of nodes for which every node is drawn as a line.

With more nodes, each node is drawn as a square, and the lines are folded below the squares."""
SHADES = 10
"""The number of shades of a square; the shade shows the requested share of allocatable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The requested share of allocatable in thousandths, before and after the plan; `after` is None for a node that is
    removed."""

    before: int
    after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLine:
    """One node as it is drawn."""

    name: str
    pool: str
    kind: str
    zone: str
    cost: str
    amount: float
    """The cost of the node as a number, to sort by."""
    pods_before: int
    pods_after: int | None
    cpu: Bar
    memory: Bar
    state: str
    """What happens to the node, as text."""
    goes: bool
    shade_before: int
    """The shade from 0 to `SHADES`, by the requested share of cpu or of memory, whichever is larger."""
    shade_after: int | None

    @property
    def title(self) -> str:
        """The tooltip of the node's square."""
        facts = (self.kind, self.zone, self.cost, format_count(self.pods_before, "pod"))
        parts = ", ".join(part for part in facts if part)
        return f"{self.name}: {parts}, cpu {self.cpu.before // 10} %, memory {self.memory.before // 10} %; {self.state}"

    @property
    def search(self) -> str:
        """The text in which the page's search looks for words."""
        return f"{self.name} {self.pool} {self.kind} {self.zone} {self.state}".lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One pool. The nodes that stay are first, sorted by their cpu share; then the nodes that are removed, in the order
    of removal."""

    name: str
    lines: tuple[NodeLine, ...]
    nodes_after: int
    cost_before: str
    cost_after: str
    amount_before: float
    amount_after: float
    saved: str
    saved_amount: float


def build_blocks(
    nodes: Sequence[NodeReport], removed_states: Mapping[str, str], stay_states: Mapping[str, str]
) -> tuple[Block, ...]:
    """Returns a block per pool. The block of nodes in no pool is last.

    `removed_states`: removed node → what happens to it, as text, in the order of removal. `stay_states`: node that
    stays → its state, as text.
    """
    removal_order = {name: number for number, name in enumerate(removed_states)}
    by_pool: dict[str, list[NodeReport]] = {}
    for node in sorted(
        nodes, key=lambda node: (removal_order.get(node.name, -1), -_thousandths(node.before.cpu, node.cpu), node.name)
    ):
        by_pool.setdefault(node.pool, []).append(node)
    return tuple(
        _build_block(pool, by_pool[pool], {**stay_states, **removed_states})
        for pool in sorted(by_pool, key=lambda name: (not name, name))
    )


def _build_block(pool: str, nodes: Sequence[NodeReport], states: Mapping[str, str]) -> Block:
    before, after = fsum(node.cost.amount for node in nodes), fsum(node.cost.amount for node in nodes if node.after)
    unit = nodes[0].cost.unit
    return Block(
        name=pool or "not in a pool",
        lines=tuple(_node_line(node, states.get(node.name, "")) for node in nodes),
        nodes_after=sum(node.after is not None for node in nodes),
        cost_before=_format_amount(before, unit),
        cost_after=_format_amount(after, unit),
        amount_before=round(before, 2),
        amount_after=round(after, 2),
        saved=_format_amount(before - after, unit),
        saved_amount=round(before - after, 2),
    )


def _format_amount(amount: float, unit: str) -> str:
    return format_saving(Saving(amount=round(amount, 2), unit=unit))


def _node_line(node: NodeReport, state: str) -> NodeLine:
    after = node.after
    return NodeLine(
        name=node.name,
        pool=node.pool,
        kind=node.instance_type,
        zone=node.zone,
        cost=format_saving(node.cost),
        amount=node.cost.amount,
        pods_before=node.before.pods,
        pods_after=after.pods if after else None,
        cpu=Bar(
            before=_thousandths(node.before.cpu, node.cpu), after=_thousandths(after.cpu, node.cpu) if after else None
        ),
        memory=Bar(
            before=_thousandths(node.before.memory, node.memory),
            after=_thousandths(after.memory, node.memory) if after else None,
        ),
        state=state,
        goes=after is None,
        shade_before=_choose_shade(node, node.before),
        shade_after=_choose_shade(node, after) if after else None,
    )


def _thousandths(used: int, allocatable: int) -> int:
    """Returns `used` in thousandths of `allocatable`, at most 1000; 0 if nothing is allocatable."""
    return min(1000, used * 1000 // allocatable) if allocatable > 0 else 0


def _choose_shade(node: NodeReport, fill: Fill) -> int:
    return max(_thousandths(fill.cpu, node.cpu), _thousandths(fill.memory, node.memory)) * SHADES // 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One node that is removed, with its moves grouped by workload."""

    node: str
    saves: str
    pods: int
    moves: tuple[tuple[str, str], ...]
    """(workload, target nodes) of the moved pods."""
    companions: tuple[str, ...] = ()
    """Sentences about the pods on other nodes that are evicted with the node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageStage:
    """One stage of the page: one round of a simulation, or one wave of a plan.

    A wave contains the nodes that may be drained before PodDisruptionBudgets allow more evictions."""

    name: str
    nodes: int
    evictions: int
    saves: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedGroup:
    """The nodes (or pods) that stay for reasons with the same code."""

    code: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """One reason that keeps nodes, with the saving that it prevents."""

    costs: str
    amount: float
    more_nodes: int
    because: str
    pods: tuple[str, ...]
    todo: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One preset in the comparison of presets."""

    name: str
    nodes_after: int
    saves: str
    amount: float
    """The saving of the preset as a number, to sort by."""
    evictions: int
    is_planned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PageReplacement:
    """A cheaper new node, and the nodes in whose place it would be."""

    nodes: tuple[str, ...]
    group: str
    zone: str
    kind: str
    """The machine type; empty if it is not known."""
    cost: str
    saves: str
    amount: float
    """The saving as a number, to sort by."""
    pods: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Better:
    """A group of pods that would cost less on other nodes."""

    text: str
    pods: tuple[str, ...]
    policy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """All values from which the page is rendered."""

    title: str
    headline: str
    """The answer, as a sentence."""
    origin: Markup
    facts: tuple[tuple[str, str], ...]
    """The key figures: (number, its meaning)."""
    change: Markup
    """The picture of the pools before and after."""
    bound: str
    blocks: tuple[Block, ...]
    """The pools with their nodes."""
    stage: str
    """What a stage is called: Wave or Round."""
    stages: tuple[PageStage, ...]
    chart: Markup
    groups: tuple[BlockedGroup, ...]
    reasons: Markup
    notes: Sequence[str]
    choices: tuple[Choice, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    frontier: Markup = field(default_factory=Markup)
    misplaced: tuple[Better, ...] = ()
    replacements: tuple[PageReplacement, ...] = ()
    replacements_text: str = ""
    """What the replacements save, and under which condition."""

    @property
    def has_departures(self) -> bool:
        """Whether any node is removed. If none is removed, the page need not show the nodes before and after."""
        return any(line.goes for block in self.blocks for line in block.lines)

    @property
    def has_lines(self) -> bool:
        """Whether there are few enough nodes to draw each as a line."""
        return sum(len(block.lines) for block in self.blocks) <= MAX_LINES


def render_html(page: Page) -> str:
    """Returns the HTML page, in which all text from the cluster is escaped.

    The page loads nothing and runs only its own script, which sorts and searches; its Content-Security-Policy enforces
    that.
    """
    folder = resources.files("trimtab.cli.page")
    script = folder.joinpath("page.js").read_text("utf-8")
    # The page's Content-Security-Policy admits only the script with this digest (CSP level 2, hash-source).
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(folder.joinpath("page.html").read_text("utf-8"))
    own_script = Markup(script)  # noqa: S704  a file of this package
    return template.render(page=page, script=own_script, digest=digest, style=page_style()) + "\n"


def draw_pools(blocks: Sequence[Block]) -> Markup:
    """Returns the picture of each pool: its nodes and what they cost, now and after the plan."""
    return draw_changes(
        [
            Change(
                name=block.name,
                before=block.amount_before,
                before_text=f"{format_count(len(block.lines), 'node')}, {block.cost_before}",
                after=block.amount_after,
                after_text=f"{format_count(block.nodes_after, 'node')}, {block.cost_after}",
            )
            for block in sorted(blocks, key=lambda block: -block.saved_amount)
        ],
        "after the plan",
    )


PAGE_WIDTH = 1152
_SVG = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
_ROW = Markup(
    '<text x="200" y="{y}" class="name">{name}</text>'
    '<rect class="{kind}" x="210" y="{top}" width="{wide}" height="14"/>'
    '<text x="{end}" y="{y}">{label}</text>'
)


def draw_bars(bars: Sequence[tuple[str, int, str]], kind: str) -> Markup:
    """Returns an SVG with a bar per (name, number, label)."""
    max_number, width = max((number for _, number, _ in bars), default=0) or 1, 500
    texts = []
    for line, (name, number, label) in enumerate(bars):
        bar_width = max(1, number * width // max_number)
        texts.append(
            _ROW.format(
                y=line * 20 + 13,
                top=line * 20 + 2,
                name=name,
                kind=kind,
                wide=bar_width,
                end=216 + bar_width,
                label=label,
            )
        )
    return _SVG.format(PAGE_WIDTH, max(1, len(bars)) * 20, "bars", Markup("").join(texts))


Point = tuple[float, float, str]
"""A point of a chart: (evictions, saving, label)."""
_HIGH, _LEFT, _RIGHT, _TOP, _BOTTOM = 260, 120, 1000, 20, 220
_MARK = Markup('<g><title>{}</title><circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}"/></g>')
_TEXT = Markup('<text x="{:.1f}" y="{:.1f}"{}>{}</text>')


def draw_frontier(line: Sequence[Point], marks: Sequence[Point], unit: str) -> Markup:
    """Returns an SVG chart of the saving by the number of evictions: a line for the plan, and a named point for each
    preset.

    The SVG is empty if the line has fewer than two points, or if nothing is saved.
    """
    most_evictions = max((x for x, _, _ in (*line, *marks)), default=0)
    most_saved = max((y for _, y, _ in (*line, *marks)), default=0)
    if len(line) < 2 or not most_evictions or not most_saved:
        return Markup("")

    def scale(point: Point) -> tuple[float, float]:
        x, y, _ = point
        return (_LEFT + x / most_evictions * (_RIGHT - _LEFT), _BOTTOM - y / most_saved * (_BOTTOM - _TOP))

    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(scale, line))
    parts = [Markup('<path class="axis" d="M{0} {1}V{2}H{3}"/>').format(_LEFT, _TOP, _BOTTOM, _RIGHT)]
    parts.append(Markup('<polyline class="frontier" points="{}"/>').format(path))
    parts += [_MARK.format(point[2], "point", *scale(point), 4) for point in line]
    for point in marks:
        x, y = scale(point)
        parts.append(_MARK.format(f"{point[2]}: {point[0]:,.0f} evictions", "preset", x, y, 6))
        parts.append(_TEXT.format(x + 10, y - 8 if y > _HIGH / 2 else y + 14, "", point[2]))
    parts.append(_TEXT.format(_LEFT - 8, _TOP + 5, Markup(' class="name"'), f"{most_saved:,.0f}"))
    parts.append(_TEXT.format(_LEFT - 8, _BOTTOM, Markup(' class="name"'), "0"))
    parts.append(_TEXT.format(_LEFT, _BOTTOM + 18, "", "0 evictions"))
    parts.append(_TEXT.format(_RIGHT, _BOTTOM + 18, Markup(' class="name"'), f"{most_evictions:,.0f}"))
    parts.append(_TEXT.format(_LEFT + 8, _TOP + 5, "", f"{unit} saved"))
    return _SVG.format(PAGE_WIDTH, _HIGH, "savings against evictions", Markup("").join(parts))


def describe_stays(stays: Sequence[StayReport]) -> dict[str, str]:
    """Returns node → a text with the code of the reason why the node stays."""
    return {stay.node: f"stays because of {stay.blocked_by or stay.reason.code}" for stay in stays}


def group_stays(stays: Sequence[StayReport]) -> tuple[BlockedGroup, ...]:
    """Returns the nodes that stay, grouped by reason. Each node has its own sentence."""
    return tuple(
        BlockedGroup(
            code=code,
            sentences=tuple(
                stay.reason.text if stay.node in stay.reason.text else f"{stay.node}: {stay.reason.text}"
                for stay in stays_
            ),
        )
        for code, stays_ in group_by_code(stays)
    )


def draw_reason_bars(stays: Sequence[StayReport]) -> Markup:
    """Returns an SVG with a bar per reason, for the number of nodes that stay for this reason."""
    return draw_bars(
        [(code.rpartition(": ")[2], len(group), str(len(group))) for code, group in group_by_code(stays)], "cpu"
    )
