"""The law of policies that only watch: what they say they would do is what they would do."""

from dataclasses import replace

from hypothesis import assume, given

from tests.build import NAMESPACE
from tests.property import strategies as some
from trimtab.policy.decide import decide
from trimtab.policy.podpolicy import Policies


def in_mode(policy, mode):
    return replace(policy, spec=replace(policy.spec, mode=mode, rollout=100))


@given(some.pods(), some.policies(), some.worlds())
def test_a_policy_that_watches_would_change_what_it_changes_when_it_applies(pod, by, world):
    assume(by.all)
    first, *others = by.all
    watched = decide(pod, Policies((in_mode(first, "warn"), *others)), world, NAMESPACE)
    alone = decide(pod, Policies(tuple(p for p in others if p.spec.mode == "apply")), world, NAMESPACE)
    applied = [in_mode(first, "apply"), *(p for p in others if p.spec.mode == "apply")]
    # Where others change nothing there is one round, and the two can be compared.
    assume(not alone.changes and alone.denied is None)
    done = decide(pod, Policies(tuple(applied)), world, NAMESPACE)
    assume(done.denied is None)
    would = {change.field: change.after for change in watched.would if change.policy == first.name}
    does = {change.field: change.after for change in done.changes if change.policy == first.name}
    assert would.items() <= does.items()
    assert bool(would) is bool(does)


@given(some.pods(), some.policies(), some.worlds())
def test_to_watch_changes_nothing_of_what_is_decided(pod, by, world):
    with_watchers = decide(pod, by, world, NAMESPACE)
    without = decide(pod, Policies(tuple(p for p in by.all if p.spec.mode == "apply")), world, NAMESPACE)
    assert (with_watchers.pod, with_watchers.changes) == (without.pod, without.changes)
