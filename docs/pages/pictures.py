"""The pictures of a terminal in README.md and docs/: what a command prints, drawn as SVG."""

from io import StringIO

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from trimtab.cli.demo import sample_pool

WIDTH = 116
"""Columns of the terminal."""

_THEME = TerminalTheme(
    (18, 22, 29),
    (229, 233, 240),
    [(18, 22, 29), (224, 108, 117), (127, 200, 127), (229, 192, 123),
     (97, 175, 239), (198, 120, 221), (86, 182, 194), (200, 205, 214)],
    [(140, 150, 166), (224, 108, 117), (127, 200, 127), (229, 192, 123),
     (97, 175, 239), (198, 120, 221), (86, 182, 194), (255, 255, 255)],
)  # fmt: skip

# As rich's own form, without the fonts that it loads from the network.
_FORM = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>The end of `trimtab demo`: nine nodes before and after a compaction</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""  # noqa: E501  CSS


def draw_demo() -> str:
    """Return the part of `trimtab demo` about a pool, as SVG. The same on every machine."""
    console = Console(
        record=True, file=StringIO(), width=WIDTH, color_system="truecolor", force_terminal=True, legacy_windows=False
    )
    sample_pool.draw_sample_pool(console)
    return console.export_svg(title="trimtab demo", theme=_THEME, code_format=_FORM, unique_id="trimtab")
