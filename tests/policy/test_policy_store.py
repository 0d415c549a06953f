"""Policies edited one by one in the cluster: a broken one harms nobody, itself included."""

import yaml

from tests.build import policy
from trimtab.cluster.api.admissionregistration import Custom
from trimtab.cluster.api.meta import Metadata
from trimtab.policy.policy_store import PolicyStore, load_object

NO_LIMITS = "{limits: {cpu: remove}}"


def stored(name: str, actions: str = NO_LIMITS, **spec: object) -> Custom:
    document = yaml.safe_load(policy(actions, name=name, **spec))
    return Custom(metadata=Metadata(name=name, namespace=""), spec=document["spec"])


def put(standing, *objects):
    for found in objects:
        standing.put(found.metadata.name, load_object(found))
    return standing.policies()


def test_they_decide_in_the_order_of_their_priority():
    found = put(PolicyStore(), stored("a"), stored("b", priority=7))
    assert [each.name for each in found.all] == ["b", "a"]


def test_a_broken_edit_leaves_the_policy_as_it_was_and_is_named():
    standing = PolicyStore()
    before = put(standing, stored("a"), stored("b"))
    assert put(standing, stored("a", "{limits: {cpu: remoev}}")) is before
    assert [m.sentence for m in standing.broken()["a"]] == [
        "PodPolicy a spec.actions.limits.cpu: expected remove, keep, request, or request x 1.5, got 'remoev'"
    ]


def test_a_policy_that_never_was_sound_is_not_in_force():
    assert put(PolicyStore(), stored("a", "{}")).all == ()


def test_mending_it_ends_the_report():
    standing = PolicyStore()
    put(standing, stored("a", "{}"), stored("a"))
    assert standing.broken() == {}


def test_an_edit_that_says_the_same_changes_nothing():
    standing = PolicyStore()
    assert put(standing, stored("a")) is put(standing, stored("a"))


def test_a_policy_deleted_is_out_of_force():
    standing = PolicyStore()
    put(standing, stored("a"), stored("b"))
    standing.drop("a")
    assert [each.name for each in standing.policies().all] == ["b"]


def test_an_edit_leaves_the_other_policies_the_very_same():
    standing = PolicyStore()
    before = put(standing, stored("a"), stored("b"))
    after = put(standing, stored("b", enabled="false"))
    assert after.all[0] is before.all[0]
    assert after.all[1] is not before.all[1]
