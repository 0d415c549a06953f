"""Every shipped policy shows on pods what it does and what it leaves alone, and does it.

`TRIMTAB_ACCEPT=1` rewrites the `.after.yaml` files; what they claim (`.why.yaml`) is written by hand.
"""

import os

import pytest

from tests.build import before_and_after
from tests.policies.examples import FOLDER, Example, examples, outcome
from tests.policies.runner import run, shipped, world
from trimtab.admission.apiserver import resourcequota
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.admission.json_patch import check_patch, diff_pods
from trimtab.cli.policies.example_cases import Case, find_problems
from trimtab.cluster.api.pod import Pod
from trimtab.policy.decide import decide
from trimtab.policy.podpolicy import Policies

ACCEPT = os.environ.get("TRIMTAB_ACCEPT") == "1"
ALL = examples()
by_case = pytest.mark.parametrize("example", ALL, ids=str)


@by_case
def test_the_verb_finds_no_difference_from_what_the_example_says(example: Example) -> None:
    """The stored pod, the reasons, and whether the policy makes a difference."""
    case = Case(example.path("why").parent, example.case)
    assert list(find_problems(case, {policy.name: policy for policy in shipped()}, accept=ACCEPT)) == []


@by_case
def test_every_patch_of_all_policies_together_is_safe_to_send(example: Example) -> None:
    path = example.path("world")
    facts = world(path.read_bytes() if path.exists() else b"")
    namespace, policies = example.run.namespace, Policies.from_policies(*shipped())
    process = run(example.run.made, namespace, shipped(), facts)
    # What a policy requires goes out also where the quota has no room; then that is what the example shows.
    by_quota = isinstance(example.run.outcome, PodRejected) and example.run.outcome.plugin == resourcequota.PLUGIN

    def again(pod: Pod) -> Pod:
        return decide(pod, policies, facts, namespace).pod

    for observation, decision in zip(process.seen, process.decisions, strict=True):
        after = decision.pod
        pods = before_and_after(observation, after, facts, namespace)
        wrong = check_patch(pods, diff_pods(observation, after), again, quota_may_refuse=by_quota)
        assert wrong is None


@by_case
def test_admitting_the_stored_pod_again_changes_nothing(example: Example) -> None:
    stored = example.run.outcome
    path = example.path("world")
    names = (example.policy, *example.why.beside)
    if hasattr(stored, "pod"):
        facts = world(path.read_bytes() if path.exists() else b"")
        second_process = run(stored.pod, example.run.namespace, [p for p in shipped() if p.name in names], facts)
        assert outcome(second_process) == outcome(example.run)


@pytest.mark.parametrize("name", [policy.name for policy in shipped()])
def test_every_policy_shows_a_pod_it_acts_on_and_one_it_leaves_alone(name: str) -> None:
    whys = [example.why for example in ALL if example.policy == name]
    assert any(why.acts or why.would for why in whys)
    assert any(not why.acts and not why.would for why in whys)


def test_nothing_lies_in_the_examples_that_no_test_reads() -> None:
    names = {policy.name for policy in shipped()}
    read = {example.path(part) for example in ALL for part in ("before", "after", "why", "world")}
    assert {path.name for path in FOLDER.iterdir()} == names
    assert [path for path in FOLDER.glob("*/*") if path not in read] == []
