"""The nodes as the page shows them: pools as blocks, a square for each node of many, a line for each of few.

The page's parts as values, and the page made of them.

Pictures of a plan: rows of bars, and savings against evictions. Inline SVG; colours come from the page's classes.

Those that stay, as the page shows them.
"""

import hashlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources

from jinja2 import Environment
from markupsafe import Markup

from trimtab.cli.plan.cost import Saving, format_saving
from trimtab.cli.plan.report import Fill, NodeReport, StayReport
from trimtab.cli.plan.table import group_by_code

MOST_LINES = 60
"""Nodes of a page that has a line for each; of more a page has squares, and the lines below them, folded."""
STEPS = 10
"""Shades of a square, by how full the node is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """Thousandths of what is allocatable, before and after; `after` is None for a node that goes."""

    before: int
    after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLine:
    """One node."""

    name: str
    pool: str
    kind: str
    zone: str
    cost: str
    amount: float
    """Of the cost, to sort by."""
    pods_before: int
    pods_after: int | None
    cpu: Bar
    memory: Bar
    state: str
    """What becomes of it, in words."""
    goes: bool
    shade_before: int
    """Of `STEPS`, by the fuller of cpu and memory."""
    shade_after: int | None

    @property
    def title(self) -> str:
        """What one reads with the pointer over its square."""
        facts = (self.kind, self.zone, self.cost, f"{self.pods_before} pods")
        parts = ", ".join(part for part in facts if part)
        return f"{self.name}: {parts}, cpu {self.cpu.before // 10} %, memory {self.memory.before // 10} %; {self.state}"

    @property
    def search(self) -> str:
        """What the search looks at."""
        return f"{self.name} {self.pool} {self.kind} {self.zone} {self.state}".lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One pool, its nodes in order: those that stay, fullest first, then those that go, in their order."""

    name: str
    lines: tuple[NodeLine, ...]
    nodes_after: int
    cost_before: str
    cost_after: str
    amount_before: float
    amount_after: float
    saved: str
    saved_amount: float


def blocks(nodes: Sequence[NodeReport], going: Mapping[str, str], staying: Mapping[str, str]) -> tuple[Block, ...]:
    """By pool, nodes in no pool last. `going`, `staying`: node → what becomes of it; those that go in their order."""
    place = {name: number for number, name in enumerate(going)}
    by_pool: dict[str, list[NodeReport]] = {}
    for node in sorted(
        nodes, key=lambda node: (place.get(node.name, -1), -_share(node.before.cpu, node.cpu), node.name)
    ):
        by_pool.setdefault(node.pool, []).append(node)
    return tuple(
        _block(pool, by_pool[pool], {**staying, **going}) for pool in sorted(by_pool, key=lambda name: (not name, name))
    )


def _block(pool: str, nodes: Sequence[NodeReport], states: Mapping[str, str]) -> Block:
    before, after = sum(node.cost.amount for node in nodes), sum(node.cost.amount for node in nodes if node.after)
    unit = nodes[0].cost.unit
    return Block(
        name=pool or "in no pool", lines=tuple(_line(node, states.get(node.name, "")) for node in nodes),
        nodes_after=sum(node.after is not None for node in nodes), cost_before=_words(before, unit),
        cost_after=_words(after, unit), amount_before=round(before, 2), amount_after=round(after, 2),
        saved=_words(before - after, unit), saved_amount=round(before - after, 2),
    )  # fmt: skip


def _words(amount: float, unit: str) -> str:
    return format_saving(Saving(amount=round(amount, 2), unit=unit))


def _line(node: NodeReport, state: str) -> NodeLine:
    after = node.after
    return NodeLine(
        name=node.name, pool=node.pool, kind=node.instance_type, zone=node.zone, cost=format_saving(node.cost),
        amount=node.cost.amount, pods_before=node.before.pods, pods_after=after.pods if after else None,
        cpu=Bar(before=_share(node.before.cpu, node.cpu), after=_share(after.cpu, node.cpu) if after else None),
        memory=Bar(
            before=_share(node.before.memory, node.memory), after=_share(after.memory, node.memory) if after else None
        ),
        state=state, goes=after is None, shade_before=_shade(node, node.before),
        shade_after=_shade(node, after) if after else None,
    )  # fmt: skip


def _share(used: int, have: int) -> int:
    """Thousandths, at most all."""
    return min(1000, used * 1000 // have) if have > 0 else 0


def _shade(node: NodeReport, fill: Fill) -> int:
    return max(_share(fill.cpu, node.cpu), _share(fill.memory, node.memory)) * STEPS // 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One node that goes, with its moves folded per workload."""

    node: str
    saves: str
    pods: int
    moves: tuple[tuple[str, str], ...]
    """(what, where to)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageStage:
    """One wave, or one round."""

    name: str
    nodes: int
    evictions: int
    saves: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedGroup:
    """Nodes (or pods) that stay for the same kind of reason."""

    code: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """One reason that keeps nodes, with what it costs."""

    costs: str
    amount: float
    more_nodes: int
    because: str
    pods: tuple[str, ...]
    todo: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One preset beside the others."""

    name: str
    nodes_after: int
    saves: str
    amount: float
    """Of what is saved, to sort by."""
    evictions: int
    is_planned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Better:
    """Pods that would be better elsewhere."""

    text: str
    pods: tuple[str, ...]
    policy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    title: str
    headline: str
    facts: tuple[tuple[str, str], ...]
    """(number, what it is)."""
    bound: str
    blocks: tuple[Block, ...]
    """The pools with their nodes."""
    stage: str
    """What a stage is called: Wave, Round."""
    stages: tuple[PageStage, ...]
    chart: Markup
    groups: tuple[BlockedGroup, ...]
    reasons: Markup
    notes: Sequence[str]
    choices: tuple[Choice, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    frontier: Markup = field(default_factory=Markup)
    misplaced: tuple[Better, ...] = ()

    @property
    def has_departures(self) -> bool:
        """Whether any node goes; otherwise all nodes are afterwards as they are before."""
        return any(line.goes for block in self.blocks for line in block.lines)

    @property
    def has_lines(self) -> bool:
        """Whether the nodes are few enough for a line each; otherwise they are squares first."""
        return sum(len(block.lines) for block in self.blocks) <= MOST_LINES


def render(page: Page) -> str:
    """One HTML document; everything that came from the cluster is escaped.

    It loads nothing and runs nothing but its own script, which sorts and searches: a browser is told so, too.
    """
    folder = resources.files("trimtab.cli.page")
    script = folder.joinpath("page.js").read_text("utf-8")
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(folder.joinpath("page.html").read_text("utf-8"))
    return template.render(page=page, script=Markup(script), digest=digest) + "\n"  # noqa: S704  our own file


WIDTH = 1152
_SVG = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
_ROW = Markup(
    '<text x="200" y="{y}" class="name">{name}</text>'
    '<rect class="{kind}" x="210" y="{top}" width="{wide}" height="14"/>'
    '<text x="{end}" y="{y}">{label}</text>'
)


def rows(found: Sequence[tuple[str, int, str]], kind: str) -> Markup:
    """A row of bars: (name, number, label)."""
    most, room = max((number for _, number, _ in found), default=0) or 1, 500
    texts = []
    for line, (name, number, label) in enumerate(found):
        wide = max(1, number * room // most)
        texts.append(_ROW.format(
            y=line * 20 + 13, top=line * 20 + 2, name=name, kind=kind, wide=wide, end=216 + wide, label=label,
        ))  # fmt: skip
    return _SVG.format(WIDTH, max(1, len(found)) * 20, "bars", Markup("").join(texts))


Point = tuple[float, float, str]
"""(evictions, what is saved, what it is)."""
_HIGH, _LEFT, _RIGHT, _TOP, _BOTTOM = 260, 120, 1000, 20, 220
_MARK = Markup('<g><title>{}</title><circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}"/></g>')
_TEXT = Markup('<text x="{:.1f}" y="{:.1f}"{}>{}</text>')


def frontier(line: Sequence[Point], marks: Sequence[Point], unit: str) -> Markup:
    """Evictions to the right, savings upwards: the line of one plan, and marks with their names beside it.

    Empty where there is nothing to draw.
    """
    most_evictions = max((x for x, _, _ in (*line, *marks)), default=0)
    most_saved = max((y for _, y, _ in (*line, *marks)), default=0)
    if len(line) < 2 or not most_evictions or not most_saved:
        return Markup("")

    def at(point: Point) -> tuple[float, float]:
        x, y, _ = point
        return (
            _LEFT + x / most_evictions * (_RIGHT - _LEFT),
            _BOTTOM - y / most_saved * (_BOTTOM - _TOP),
        )

    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(at, line))
    parts = [Markup('<path class="axis" d="M{0} {1}V{2}H{3}"/>').format(_LEFT, _TOP, _BOTTOM, _RIGHT)]
    parts.append(Markup('<polyline class="frontier" points="{}"/>').format(path))
    parts += [_MARK.format(point[2], "point", *at(point), 4) for point in line]
    for point in marks:
        x, y = at(point)
        parts.append(_MARK.format(f"{point[2]}: {point[0]:,.0f} evictions", "preset", x, y, 6))
        parts.append(_TEXT.format(x + 10, y - 8 if y > _HIGH / 2 else y + 14, "", point[2]))
    parts.append(_TEXT.format(_LEFT - 8, _TOP + 5, Markup(' class="name"'), f"{most_saved:,.0f}"))
    parts.append(_TEXT.format(_LEFT - 8, _BOTTOM, Markup(' class="name"'), "0"))
    parts.append(_TEXT.format(_LEFT, _BOTTOM + 18, "", "0 evictions"))
    parts.append(_TEXT.format(_RIGHT, _BOTTOM + 18, Markup(' class="name"'), f"{most_evictions:,.0f}"))
    parts.append(_TEXT.format(_LEFT + 8, _TOP + 5, "", f"{unit} saved"))
    return _SVG.format(WIDTH, _HIGH, "savings against evictions", Markup("").join(parts))


def states(stays: Sequence[StayReport]) -> dict[str, str]:
    """Node → why it stays, by code."""
    return {stay.node: f"stays: {stay.blocked_by or stay.reason.code}" for stay in stays}


def groups(stays: Sequence[StayReport]) -> tuple[BlockedGroup, ...]:
    """By reason; each node with its own sentence."""
    return tuple(
        BlockedGroup(code=code, sentences=tuple(map(_sentence, found))) for code, found in group_by_code(stays)
    )


def _sentence(stay: StayReport) -> str:
    return stay.reason.text if stay.node in stay.reason.text else f"{stay.node}: {stay.reason.text}"


def picture(stays: Sequence[StayReport]) -> Markup:
    """How many stay for which reason."""
    return rows(
        [(code.rpartition(": ")[2], len(found), str(len(found))) for code, found in group_by_code(stays)], "cpu"
    )
