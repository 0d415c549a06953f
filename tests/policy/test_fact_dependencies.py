"""Questions asked of the facts, and whether newer facts still answer them in the same way."""

from dataclasses import replace

from tests.build import facts, namespace, owner_key, quota, runtime_class
from trimtab.policy.decision_reads import Freshness, track_dependencies

WORLD = facts(namespace("a", team="x"), runtime_class("kata"), quota({"pods": "9"}, used={"pods": "1"}))


def since(ask, newer):
    noted, reads = track_dependencies(WORLD)
    ask(noted)
    return reads.check_freshness(newer)


def test_a_key_that_was_absent_is_a_question_too():
    newer = replace(WORLD, namespaces={**WORLD.namespaces, "b": {}})
    assert since(lambda f: f.namespaces.get("b"), newer) is Freshness.OTHER
    assert since(lambda f: "b" in f.namespaces, newer) is Freshness.OTHER
    assert since(lambda f: f.namespaces["a"], newer) is Freshness.SAME


def test_to_go_through_all_is_to_ask_for_all():
    newer = replace(WORLD, runtime_classes={**WORLD.runtime_classes})
    assert since(lambda f: list(f.runtime_classes), newer) is Freshness.OTHER
    assert since(lambda f: len(f.runtime_classes), newer) is Freshness.OTHER
    assert since(lambda f: bool(f.runtime_classes), newer) is Freshness.SAME
    assert since(lambda f: bool(f.runtime_classes), replace(WORLD, runtime_classes={})) is Freshness.OTHER


def test_a_field_without_keys_counts_as_read():
    assert since(lambda f: None, replace(WORLD, vpa_reach=())) is Freshness.OTHER
    assert since(lambda f: None, replace(WORLD, listed_kinds=frozenset(WORLD.listed_kinds))) is Freshness.SAME


def test_only_the_use_of_a_quota_is_told_apart():
    def ask(f):
        f.quotas.get("team-a")

    used = replace(WORLD, quotas={"team-a": (quota({"pods": "9"}, used={"pods": "2"}),)})
    more = replace(WORLD, quotas={"team-a": (quota({"pods": "8"}, used={"pods": "1"}),)})
    assert (since(ask, used), since(ask, more)) == (Freshness.USED, Freshness.OTHER)
    assert since(ask, replace(WORLD, quotas={})) is Freshness.OTHER


def test_noted_facts_answer_as_the_facts_do():
    noted, _ = track_dependencies(WORLD)
    assert dict(noted.namespaces) == dict(WORLD.namespaces)
    assert noted.recommendations.find_usage(owner_key("Deployment/b", "a"), "c") == WORLD.recommendations.find_usage(
        owner_key("Deployment/b", "a"), "c"
    )
    assert ("nope" in noted.quotas, noted.quotas.get("nope", ())) == (False, ())
