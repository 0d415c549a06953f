"""docs/reference/stand-in.md: the rules of the cluster autoscaler for which the stand-in stands."""

from trimtab.autoscaling.churn.stand_in_rules import RULES, StandInFlags

_SOURCE = "https://github.com/kubernetes/autoscaler/blob/cluster-autoscaler-release-1.36/cluster-autoscaler/"
_HEAD = f"""\
# The stand-in for the cluster autoscaler

The cluster autoscaler cannot be built from a Go module, so where Trimtab is measured over time, a stand-in takes its
place: in `trimtab simulate --churn` and in `make bench-churn`, where both run the same code. Each entry is one rule
that the stand-in follows, with the function of the autoscaler that has it. `tests/autoscaling/churn/test_stand_in.py`
tests each. It does nothing else: it has no node groups with a maximum, several expanders, atomic groups, or limits on
the cores of the cluster.

Its flags are the autoscaler's defaults: `{"`, `".join(StandInFlags().format_arguments())}`.

"""


def page() -> str:
    return _HEAD + "".join(
        f"- `{rule.name}`: {rule.text} ([`{rule.function}`]({_SOURCE}{rule.file}))\n" for rule in RULES
    )
