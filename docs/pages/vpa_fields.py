"""docs/reference/vpa-fields.md: every field of a VPA, and what Trimtab does with it as the VPA's recommender."""

from trimtab.sizing.vpa.amounts import FULL_HISTORY_DAYS
from trimtab.sizing.vpa.fields import VPA_FIELDS, FieldUse
from trimtab.sizing.vpa.settings import RULE_ANNOTATIONS, WINDOW_ANNOTATION

_POLICIES, _RECOMMENDATIONS = (
    "spec.resourcePolicy.containerPolicies[]",
    "status.recommendation.containerRecommendations[]",
)
_HEAD = """\
# The fields of a VPA

What Trimtab does with each field of a VerticalPodAutoscaler whose only recommender is `trimtab`. The table is that of
`autoscaling.k8s.io/v1` in VPA 1.8; a test compares it with the VPA's own definition. How to use it:
[keep your VPA, take Trimtab's numbers](../how-to/keep-your-vpa.md). The three dots stand for
`spec.resourcePolicy.containerPolicies[]`, under *Written* for `status.recommendation.containerRecommendations[]`.
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
        paths: dict[str, list[str]] = {}
        for field in VPA_FIELDS:
            if field.use is use:
                paths.setdefault(field.text, []).append(f"`{_shorten(field.path)}`")
        lines += [f"## {use.value.capitalize()}\n", *(f"- {', '.join(own)}: {text}" for text, own in paths.items()), ""]
    return "\n".join(lines).rstrip("\n") + "\n" + _ANNOTATIONS


def _shorten(path: str) -> str:
    return path.replace(_POLICIES, "…").replace(_RECOMMENDATIONS, "…")
