"""docs/reference/vpa-fields.md: every field of a VPA, and what Trimtab does with it as the VPA's recommender."""

from trimtab.sizing.vpa.amounts import FULL_HISTORY_DAYS
from trimtab.sizing.vpa.fields import VPA_FIELDS, FieldUse
from trimtab.sizing.vpa.settings import RULE_ANNOTATIONS, WINDOW_ANNOTATION

_HEAD = """\
# The fields of a VPA

What Trimtab does with each field of a VerticalPodAutoscaler whose only recommender is `trimtab`. The table is that of
`autoscaling.k8s.io/v1` in VPA 1.8; a test compares it with the VPA's own definition. How to use it:
[keep your VPA, take Trimtab's numbers](../how-to/keep-your-vpa.md).
"""
_ANNOTATIONS = f"""
## Annotations

These annotations of a VPA choose how its recommendation is computed. A value that is not valid gives the condition
`ConfigUnsupported`, and the recommendation stays as it is.

| annotation | example | default | meaning |
|---|---|---|---|
| `{RULE_ANNOTATIONS["cpu"]}` | `p95 +10%` | `adaptive` | the [rule](../how-to/size-requests.md) for cpu |
| `{RULE_ANNOTATIONS["memory"]}` | `max +15%` | `adaptive` | the rule for memory, of the peaks of six hours |
| `{WINDOW_ANNOTATION}` | `7` | all days | the last days that count: from 2 to `TRIMTAB_RECOMMENDER_HISTORY_DAYS` |

An amount that the VPA already has is not lowered before there are {FULL_HISTORY_DAYS} days of usage, or all days of a
shorter window.
"""


def page() -> str:
    """Return the page's text."""
    lines = [_HEAD]
    for use in FieldUse:
        lines += [f"## {use.value.capitalize()}\n", "| field | what Trimtab does |", "|---|---|"]
        lines += [f"| `{one.path}` | {one.text} |" for one in VPA_FIELDS if one.use is use]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n" + _ANNOTATIONS
