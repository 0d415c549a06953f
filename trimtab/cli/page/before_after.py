"""The picture of a change, for pages: two bars for each row, such as a pool or a day, before and after.

It is as narrow as a phone, so that its texts can be read there without scrolling, and its colours are those of pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

MAX_ROWS = 12
MAX_DAYS = 31
"""The largest number of days that are drawn: the last ones."""
_WIDTH, _BAR_WIDTH, _ROW_HEIGHT = 420, 210, 54
_PICTURE = Markup(
    '<p class="soft key"><i class="was"></i>{} <i class="becomes"></i>{}{}</p>'
    '<div class="change"><svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg></div>'
)
_ROW = Markup('<text x="0" y="{}">{}</text>{}{}')
_BAR = Markup('<rect class="{}" x="0" y="{}" width="{:.1f}" height="14"/><text x="{:.1f}" y="{}">{}</text>')


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One row: the numbers by which its bars are long, and their texts."""

    name: str
    before: float
    before_text: str
    after: float
    after_text: str


def draw_days(days: Sequence[Change], before: str, after: str, unit: str) -> Markup:
    """Returns the picture of the last days, with its key; empty without days. `before` and `after` say what the bars of
    each colour are, `unit` what their lengths are."""
    what = unit if len(days) <= MAX_DAYS else f"{unit}, the last {MAX_DAYS} days"
    return draw_changes(days[-MAX_DAYS:], after, before=before, unit=what, max_rows=MAX_DAYS)


def draw_changes(
    changes: Sequence[Change],
    after: str,
    *,
    before: str = "now",
    unit: str = "",
    has_one_unit: bool = True,
    max_rows: int = MAX_ROWS,
) -> Markup:
    """Returns the picture with its key; empty without rows. `before` and `after` say what the bars of each colour are,
    `unit` what their lengths are. `has_one_unit`: whether the rows can be compared with each other; otherwise the
    longer bar of each row has the whole width."""
    drawn = changes[:max_rows]
    if not drawn:
        return Markup("")
    longest = max(max(one.before, one.after) for one in drawn)
    rows = []
    for number, one in enumerate(drawn):
        top, whole = number * _ROW_HEIGHT, (longest if has_one_unit else max(one.before, one.after)) or 1.0
        rows.append(
            _ROW.format(
                top + 12,
                one.name,
                _draw_bar("was", top + 17, one.before / whole, one.before_text),
                _draw_bar("becomes", top + 33, one.after / whole, one.after_text),
            )
        )
    texts = "; ".join(f"{one.name}: {before} {one.before_text}, {after} {one.after_text}" for one in drawn)
    what = f"; {unit}" if unit else ""
    return _PICTURE.format(before, after, what, _WIDTH, len(drawn) * _ROW_HEIGHT, texts, Markup("").join(rows))


def _draw_bar(kind: str, top: int, share: float, text: str) -> Markup:
    width = max(1.0, share * _BAR_WIDTH)
    return _BAR.format(kind, top, width, width + 5, top + 11, text)
