"""Those that stay, as the page shows them."""

from collections.abc import Sequence

from markupsafe import Markup

from trimtab.command.page.pictures import rows
from trimtab.command.page.render import Group
from trimtab.command.plan.draw import by_code
from trimtab.command.plan.report import StayReport


def groups(stays: Sequence[StayReport]) -> tuple[Group, ...]:
    """By reason; each node with its own sentence."""
    return tuple(Group(code=code, sentences=tuple(map(_sentence, found))) for code, found in by_code(stays))


def _sentence(stay: StayReport) -> str:
    return stay.reason.text if stay.node in stay.reason.text else f"{stay.node}: {stay.reason.text}"


def picture(stays: Sequence[StayReport]) -> Markup:
    """How many stay for which reason."""
    return rows([(code.rpartition(": ")[2], len(found), str(len(found))) for code, found in by_code(stays)], "cpu")
