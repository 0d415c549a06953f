"""docs/reference/lint.md: every rule, with its reason and its fix."""

from collections.abc import Iterator

from docs.pages.sentences import first_clause, first_sentence
from trimtab.autoscaling.rule import LintRule, Needs
from trimtab.autoscaling.rules import ALL_RULES

_HEAD = """# The rules of `trimtab lint`

`trimtab lint -f FILE…` checks manifests, and `trimtab lint --cluster SNAPSHOT` a cluster. How to use it:
[Check autoscaling](../how-to/check-autoscaling.md). The report as JSON: [JSON Schemas](json-schemas.md#lintreport).

The codes are two series of numbers, L and N; the letter says nothing about a rule. The severity is the highest one
that a rule gives. What a rule needs in addition to manifests is in its last line: without that it is *not checked*,
and the report says so. A history of usage is `--usage`, or published recommendations. Of a longer text, this page has
the beginning; `trimtab explain CODE` prints the rest, and the sources. Most rules about HPAs and VPAs follow
Gardener's guide on pod autoscaling.
"""

MAX_WORDS = 12
"""A longer explanation of a rule is shortened to its first sentence, and that to what is before its colon."""
_THEMES = {
    "hpa_with_vpa": "HPA and VPA on one workload",
    "hpa_settings": "Settings of an HPA",
    "hpa_targets": "Targets of an HPA",
    "vpa_bounds": "Bounds of a VPA",
    "vpa_refused_requests": "Requests of a VPA that the API server refuses",
    "vpa_targets": "Targets of a VPA, and whether it can act",
    "whole_pod_requests": "Requests of pods as a whole",
    "disruption_budgets": "PodDisruptionBudgets",
    "quality_of_service": "Requests, limits and quality of service",
    "request_sizes": "Requests and usage",
    "scheduling": "Scheduling",
    "pod_terms": "Terms of pods for their evictions",
    "nodes": "Nodes",
    "cluster_autoscaler": "The cluster autoscaler",
    "trimtab_itself": "Trimtab itself",
}
"""Module of rules → its heading."""


def page() -> str:
    """Return the page. Raises ValueError for a theme without a heading."""
    themes = sorted({rule.theme for rule in ALL_RULES}, key=list(_THEMES).index)
    return "\n".join([_HEAD, *(line for theme in themes for line in _theme(theme))])


def _theme(theme: str) -> Iterator[str]:
    rules = [rule for rule in ALL_RULES if rule.theme == theme]
    yield f"## {_THEMES[theme]}\n"
    for rule in rules:
        yield from _rule(rule)


def _rule(rule: LintRule) -> Iterator[str]:
    yield f"### {rule.code}\n"
    why = " ".join(rule.why.split())
    shown = why if len(why.split()) <= MAX_WORDS else first_clause(why)
    yield f"**{rule.title}** ({rule.severity.value}). {shown} *Fix:* {first_sentence(rule.fix)}\n"
    if rule.needs:
        yield f"*Needs:* {'; '.join(_shorten_need(need) for need in rule.needs)}.\n"


def _shorten_need(need: Needs) -> str:
    """The value without what is in the head of the page."""
    return need.value.removesuffix(" (--usage, or published recommendations)")
