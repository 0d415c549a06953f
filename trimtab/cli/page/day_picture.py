"""A picture of days, for pages: two bars for each day, as it was and as it would have been.

It is as narrow as a phone, so that its texts can be read there without scrolling, and its colours are those of pages.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

MAX_DAYS = 31
"""The largest number of days that are drawn: the last ones."""
_WIDTH, _LEFT, _BAR_WIDTH, _ROW_HEIGHT = 420, 76, 260, 36
_PICTURE = Markup(
    '<p class="soft key"><i style="background: var(--goes-cpu)"></i>{} <i style="background: var(--cpu)"></i>{}; {}</p>'
    '<div style="max-width: 36rem"><svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg></div>'
)
_DAY = Markup('<g><title>{}: {} {}, {} {}</title><text x="0" y="{}">{}</text>{}{}</g>')
_BAR = Markup('<rect class="{}" x="{}" y="{}" width="{:.1f}" height="13"/><text x="{:.1f}" y="{}">{}</text>')


@dataclass(frozen=True, slots=True, kw_only=True)
class DayBars:
    """One day: the two numbers by which its bars are long, each with its text."""

    day: str
    was: float
    was_text: str
    would_be: float
    would_be_text: str


def draw_days(days: Sequence[DayBars], was: str, would_be: str, unit: str) -> Markup:
    """Returns the picture with its key. `was` and `would_be` say what the bars of each colour are, `unit` what their
    lengths are. Empty without days."""
    drawn = days[-MAX_DAYS:]
    if not drawn:
        return Markup("")
    longest = max(max(one.was, one.would_be) for one in drawn) or 1.0
    rows = []
    for number, one in enumerate(drawn):
        top = number * _ROW_HEIGHT
        bars = (
            _draw_bar("cpu goes", top, one.was / longest, one.was_text),
            _draw_bar("cpu", top + 15, one.would_be / longest, one.would_be_text),
        )
        rows.append(_DAY.format(one.day, was, one.was_text, would_be, one.would_be_text, top + 19, one.day, *bars))
    what = unit if len(drawn) == len(days) else f"{unit}, the last {MAX_DAYS} days"
    label = f"{what} by day: {was}, and {would_be}; a table below has the numbers"
    return _PICTURE.format(was, would_be, what, _WIDTH, len(drawn) * _ROW_HEIGHT, label, Markup("").join(rows))


def _draw_bar(kind: str, top: int, share: float, text: str) -> Markup:
    width = max(1.0, share * _BAR_WIDTH)
    return _BAR.format(kind, _LEFT, top + 1, width, _LEFT + width + 5, top + 12, text)
