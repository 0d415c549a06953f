"""docs/reference/doctor.md: what is looked at, and what each look may find."""

from collections.abc import Iterator

from trimtab.cli.doctor.command import CHECKS
from trimtab.cli.doctor.finding import NOT_CHECKED, NOTHING_WRONG, Check

_HEAD = """# What `trimtab doctor` looks at

Every check gives at least one finding: `ok`, `warn` (it works, and not as it should), `error` (something installed
does not do its work) or `unknown` (it could not be looked at, which is never taken for well). The command exits 1
where anything is an error or unknown, with `--strict` also where there is a warning; 3 where no API server answers.
Nothing is stored: two pods and a PodPolicy are created as a dry run. `--without CHECK` leaves one out, and the report
says so.

How to use it: [see that it is wired](../how-to/see-that-it-is-wired.md). The report as JSON:
[JSON Schemas](json-schemas.md#doctorreport).
"""


def page() -> str:
    return "\n".join([_HEAD, *(line for check in CHECKS for line in _check(check)), _tail()])


def _check(check: Check) -> Iterator[str]:
    yield f"## {check.name}\n"
    yield f"{check.asks}\n"
    yield "| it may find | which means |"
    yield "|---|---|"
    for code in check.may:
        yield f"| [`{code.name}`](reasons.md#{code.name}) | {code.means} |"
    yield ""


def _tail() -> str:
    both = " and ".join(f"[`{code.name}`](reasons.md#{code.name})" for code in (NOTHING_WRONG, NOT_CHECKED))
    return f"Any of them may also give {both}.\n"
