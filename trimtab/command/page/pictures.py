"""Pictures of a pool: a bar pair per node, and rows of bars. Inline SVG; colours come from the page's classes."""

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from trimtab.command.plan.report import Fill, NodeReport

WIDTH = 1152
CELL, HIGH, GAP = 18, 44, 8
"""A node: two bars of 6 beside each other, this high."""
_CELL = Markup('<g><title>{}</title><path class="{}" d="M{} {}h13v{}h-13z"/>{}</g>')
_BAR = Markup('<path class="{}" d="M{} {}h6v{}h-6z"/>')
_SVG = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')


def order(nodes: Sequence[NodeReport], going: Sequence[str]) -> list[NodeReport]:
    """Those that stay, fullest first; then those that go, in their order. The same before and after."""
    place = {name: number for number, name in enumerate(going)}
    return sorted(nodes, key=lambda node: (place.get(node.name, -1), -share(node.before.cpu, node.cpu), node.name))


def share(used: int, have: int) -> int:
    """Thousandths, at most all."""
    return min(1000, used * 1000 // have) if have > 0 else 0


def nodes(ordered: Sequence[NodeReport], *, after: bool) -> Markup:
    """A cell per node: left bar cpu, right bar memory, requested of allocatable."""
    size = cell_size(len(ordered))
    per_row = WIDTH // (CELL * size)
    rows = -(-len(ordered) // per_row)
    cells = (_node(node, n % per_row * CELL, n // per_row * (HIGH + GAP), after) for n, node in enumerate(ordered))
    label = f"{len(ordered)} nodes {'after' if after else 'before'}"
    return _SVG.format(per_row * CELL, max(1, rows) * (HIGH + GAP), label, Markup("").join(cells))


def cell_size(count: int) -> int:
    """Few nodes are drawn larger."""
    return 3 if count <= 48 else 2 if count <= 144 else 1


def _node(node: NodeReport, x: int, y: int, after: bool) -> Markup:
    fill = node.after if after else node.before
    if fill is None:
        return _CELL.format(f"{node.name}: gone", "gone", x, y, HIGH, "")
    bars = (_bar(kind, x + at, y, part) for kind, at, part in _parts(node, fill))
    return _CELL.format(_title(node, fill), "room" if node.after else "room goes", x, y, HIGH, Markup("").join(bars))


def _parts(node: NodeReport, fill: Fill) -> Iterable[tuple[str, int, int]]:
    colour = "" if node.after else " goes"
    return (("cpu" + colour, 0, share(fill.cpu, node.cpu)), ("mem" + colour, 7, share(fill.memory, node.memory)))


def _bar(kind: str, x: int, y: int, part: int) -> Markup:
    high = HIGH * part // 1000
    return _BAR.format(kind, x, y + HIGH - high, high)


def _title(node: NodeReport, fill: Fill) -> str:
    cpu, memory = (share(*pair) // 10 for pair in ((fill.cpu, node.cpu), (fill.memory, node.memory)))
    return f"{node.name}: {fill.pods} pods, cpu {cpu} %, memory {memory} % requested"


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
