"""docs/reference/reasons.md: every code, with its meaning and its advice in one sentence each."""

from docs.pages.reason_codes import product_codes
from docs.pages.sentences import first_clause, summarize_advice

_HEAD = """\
# Reasons

Every change and every refusal has one of these codes. This page has a sentence on what each code means, and one on what
to do, if there is something. `trimtab explain CODE` prints the whole text, without a cluster.
"""


def page() -> str:
    """Returns the page's text."""
    lines = [_HEAD]
    for code in product_codes():
        lines += [f"## {code.name}\n", f"{first_clause(code.means)} {summarize_advice(code.todo)}".rstrip() + "\n"]
    return "\n".join(lines)
