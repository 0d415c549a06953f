from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import facts, owner_key, owners, pod, toleration, workload
from trimtab.cluster.api.meta import LabelSelector, Metadata, SelectorRequirement
from trimtab.cluster.owner import owner_chain
from trimtab.cluster.selectors import is_covered, labels_match, name_matcher, requirement_matches

LABELS = {"a": "1", "n": "5"}


@pytest.mark.parametrize(
    ("key", "operator", "values", "holds"),
    [
        ("a", "In", ("1", "2"), True),
        ("a", "In", ("2",), False),
        ("b", "In", ("1",), False),
        ("a", "NotIn", ("1",), False),
        ("a", "NotIn", ("2",), True),
        ("b", "NotIn", ("1",), True),
        ("a", "Exists", (), True),
        ("b", "Exists", (), False),
        ("b", "DoesNotExist", (), True),
        ("n", "Gt", ("4",), True),
        ("n", "Gt", ("5",), False),
        ("n", "Lt", ("6",), True),
        ("b", "Gt", ("1",), False),
        ("n", "Gt", ("x",), False),
        ("n", "Gt", (), False),
        ("a", "Near", ("1",), False),
    ],
)
def test_an_expression_holds_as_kubernetes_says(key, operator, values, holds):
    assert requirement_matches(SelectorRequirement(key=key, operator=operator, values=values), LABELS) is holds


def test_an_empty_selector_matches_everything():
    assert labels_match(LabelSelector(), {})


def test_a_selector_asks_for_all_its_labels_and_expressions():
    wish = LabelSelector(match_labels={"a": "1"}, match_expressions=(SelectorRequirement(key="b", operator="Exists"),))
    assert (labels_match(wish, LABELS), labels_match(wish, LABELS | {"b": ""})) == (False, True)


@pytest.mark.parametrize(
    ("patterns", "name", "meant"),
    [
        (("team-*",), "team-a", True),
        (("team-*",), "a-team-a", False),
        (("web-?",), "web-1", True),
        (("a", "b"), "b", True),
        ((), "a", False),
        (("[",), "[", True),
        (("*",), "x/y:z", True),
        (("[ab]x",), "bx", True),
    ],
)
def test_patterns_mean_names(patterns, name, meant):
    assert name_matcher(patterns)(name) is meant


@pytest.mark.parametrize(
    ("have", "wanted", "expected"),
    [
        (toleration(operator="Exists"), toleration("k", "v", "NoSchedule"), True),
        (toleration("k", operator="Exists"), toleration("k", "v", "NoSchedule"), True),
        (toleration("k", "v"), toleration("k", "v", "NoSchedule"), True),
        (toleration("k", "v", "NoSchedule"), toleration("k", "v"), False),
        (toleration("k", "v", "NoExecute", seconds=5), toleration("k", "v", "NoExecute"), False),
        (toleration("k", "v", "NoExecute"), toleration("k", "v", "NoExecute", seconds=5), True),
        (toleration("k", "w"), toleration("k", "v"), False),
        (toleration("k", "v"), toleration("k", operator="Exists"), False),
    ],
)
def test_a_toleration_covers_what_it_tolerates_at_least(have, wanted, expected):
    assert is_covered(wanted, [have]) is expected


def test_owners_are_told_from_the_nearest_to_the_topmost():
    world = facts(workload("ReplicaSet/web-1", owner="Deployment/web"), workload("Deployment/web", owner="App/web"))
    assert world.owner_chain(pod(owner="ReplicaSet/web-1"), "team-a") == (
        owner_key("ReplicaSet/web-1"),
        owner_key("Deployment/web"),
        owner_key("App/web"),
    )


def test_a_bare_pod_has_no_owners():
    assert facts().owner_chain(pod(), "team-a") == ()


def test_a_replica_set_that_is_not_known_yet_tells_its_deployment_by_the_hash():
    metadata = Metadata(labels={"pod-template-hash": "5d4f"}, owner_references=owners("ReplicaSet/web-5d4f"))
    assert owner_chain(metadata, "n", lambda *_: None)[-1] == owner_key("Deployment/web", "n")


def test_owners_that_own_each_other_end():
    other = {"a": owner_key("X/b", "n"), "b": owner_key("X/a", "n")}
    assert len(owner_chain(Metadata(owner_references=owners("X/a")), "n", lambda owner: other[owner.name])) == 2


def test_a_rollouts_first_pod_is_known_by_name_too():
    labels = {"rollouts-pod-template-hash": "5d4f"}
    metadata = Metadata(labels=labels, owner_references=owners("ReplicaSet/web-5d4f"))
    assert [str(owner) for owner in owner_chain(metadata, "team-a", lambda *_: None)] == [
        "ReplicaSet/web-5d4f",
        "Rollout/web",
    ]


@given(st.lists(st.text("ab*?[]!-", max_size=5), max_size=4).map(tuple), st.text("ab-[\n", max_size=6))
def test_a_glob_is_any_of_its_shell_patterns(patterns: tuple[str, ...], name: str) -> None:
    assert name_matcher(patterns)(name) is any(fnmatchcase(name, pattern) for pattern in patterns)
