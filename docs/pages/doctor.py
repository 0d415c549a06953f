"""docs/reference/doctor.md: what is looked at, and what each look may find."""

from collections.abc import Iterator

from trimtab.cli.doctor.command import CHECKS
from trimtab.cluster.reason import Code
from trimtab.diagnosis.finding import Check
from trimtab.diagnosis.reasons import NOT_CHECKED, NOTHING_WRONG

_HEAD = """# What `trimtab doctor` checks

Every check reports at least one finding: `ok`, `warn` (it works, but not as intended), `error` (something that is
installed does not work) or `unknown` (the check was not possible, which counts as a problem). The command exits with 1
if a finding is an error or unknown, or, with `--strict`, a warning; and with 3 if no API server answers. It stores
nothing: it creates two pods and a PodPolicy as a dry run. `--without CHECK` skips a check.

Below is what each check asks, and what it may find; the links lead to what the finding means and what to do. How to
use it: [check an installation](../how-to/install-in-a-cluster.md#check-the-installation). The report as JSON:
[JSON Schemas](json-schemas.md#doctorreport).
"""


def page() -> str:
    return "\n".join([_HEAD, *(line for check in CHECKS for line in _check(check)), _tail()])


def _check(check: Check) -> Iterator[str]:
    yield f"## {check.name}\n"
    yield f"{check.asks} {', '.join(_link(code) for code in check.may)}\n"


def _link(code: Code) -> str:
    return f"[{code.name}](reasons.md#{code.name})"


def _tail() -> str:
    return f"Every check may also report {_link(NOTHING_WRONG)} and {_link(NOT_CHECKED)}.\n"
