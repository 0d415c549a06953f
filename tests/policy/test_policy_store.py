"""Policies are edited one by one in the cluster: an invalid one affects no other policy, and its last valid version
stays."""

import yaml

from tests.build import policy
from tests.reasons import has_facts
from trimtab.cluster.api.admissionregistration import Custom
from trimtab.cluster.api.meta import Dated
from trimtab.policy.watched_facts import PolicyStore, load_object

NO_LIMITS = "{limits: {cpu: remove}}"


def stored(
    name: str, actions: str = NO_LIMITS, *, generation: int = 1, status: object = None, **spec: object
) -> Custom:
    document = yaml.safe_load(policy(actions, name=name, **spec))
    return Custom(metadata=Dated(name=name, generation=generation), spec=document["spec"], status=status)


def put(store, *objects):
    for result in objects:
        store.put(result.metadata.name, load_object(result))
    return store.current_policies()


def test_they_decide_in_the_order_of_their_priority():
    result = put(PolicyStore(), stored("a"), stored("b", priority=7))
    assert [each.name for each in result.all] == ["b", "a"]


def test_a_broken_edit_leaves_the_policy_as_it_was_and_is_named():
    store = PolicyStore()
    before = put(store, stored("a"), stored("b"))
    assert put(store, stored("a", "{limits: {cpu: remoev}}")) is before
    [mistake] = store.invalid_documents()["a"]
    assert has_facts(mistake.sentence, "PodPolicy a", "spec.actions.limits.cpu", "remove, keep, request", "remoev")


def test_a_policy_that_never_was_sound_is_not_in_force():
    assert put(PolicyStore(), stored("a", "{}")).all == ()


def test_mending_it_ends_the_report():
    store = PolicyStore()
    put(store, stored("a", "{}"), stored("a"))
    assert store.invalid_documents() == {}


def test_an_edit_that_says_the_same_changes_nothing():
    store = PolicyStore()
    assert put(store, stored("a")) is put(store, stored("a"))


def test_a_policy_deleted_is_out_of_force():
    store = PolicyStore()
    put(store, stored("a"), stored("b"))
    store.drop("a")
    assert [each.name for each in store.current_policies().all] == ["b"]


def test_an_edit_leaves_the_other_policies_the_very_same():
    store = PolicyStore()
    before = put(store, stored("a"), stored("b"))
    after = put(store, stored("b", enabled="false"))
    assert after.all[0] is before.all[0]
    assert after.all[1] is not before.all[1]


def test_a_policy_that_the_harm_brake_holds_is_in_warn_until_its_author_edits_it():
    store, braked = PolicyStore(), {"brakedGeneration": 3}
    assert put(store, stored("a", generation=3, status=braked)).all[0].spec.mode == "warn"
    assert put(store, stored("a", generation=4, status=braked)).all[0].spec.mode == "apply"


def test_a_status_that_holds_no_version_changes_nothing():
    store = PolicyStore()
    for status in (None, "any", [], {}, {"brakedGeneration": None}, {"brakedGeneration": 0}, {"brakedGeneration": "1"}):
        assert put(store, stored("a", status=status)).all[0].spec.mode == "apply"
    assert put(store, stored("a", generation=0, status={"brakedGeneration": 0})).all[0].spec.mode == "apply"
