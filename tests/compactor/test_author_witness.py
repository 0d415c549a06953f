"""Since when the author of a DrainOrder is certain."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compaction.order.test_author_policy import stored
from trimtab.compaction.drain.order_entry import PolicySighting
from trimtab.compaction.order.author_policy import MARGIN_SECONDS, PolicyReading
from trimtab.compaction.order.order_object import OrderObject, OrderSpec, OrderStatus
from trimtab.compactor.order.author_witness import AuthorWitness

WRITTEN = 1_767_225_600  # 2026-01-01T00:00:00Z
LATER = WRITTEN + 100_000


def reading(generation: int = 1, uid: str = "b") -> PolicyReading:
    policy, binding = stored()
    binding["metadata"] |= {"generation": generation, "uid": uid}
    return PolicyReading(policy, binding)


def code(witness: AuthorWitness, created: int) -> str:
    order = OrderObject(
        name="o", uid="u", created=created, generation=1, spec=OrderSpec(by="ann"), status=OrderStatus()
    )
    reason = witness.author_reason(order)
    return reason.code.name if reason is not None else ""


def observed(*rounds: tuple[PolicyReading, int, float], before: PolicySighting | None = None) -> AuthorWitness:
    witness = AuthorWitness(before)
    for one, newest, now in rounds:
        witness.observe_reading(one, newest, now)
    return witness


def test_objects_that_never_changed_prove_it_themselves() -> None:
    witness = observed((reading(), LATER, 0.0))
    assert code(witness, WRITTEN + MARGIN_SECONDS) == ""
    assert code(witness, WRITTEN + MARGIN_SECONDS - 1) == "order-author-unproven"
    assert witness.sighting is None


def test_without_a_reading_nothing_is_certain_for_now() -> None:
    witness = AuthorWitness()
    assert code(witness, LATER) == "order-rights-unknown"
    witness.observe_reading(reading(), 0, 0.0)
    witness.reading_failed("no answer")
    assert code(witness, LATER) == "order-rights-unknown"


def test_what_is_listed_when_a_change_is_observed_is_not_certain_and_what_comes_later_is() -> None:
    """The binding was narrowed and restored between two looks: only its generation says so."""
    witness = observed((reading(), 0, 0.0), (reading(3), LATER, 5.0))
    assert code(witness, LATER) == "order-author-unproven"
    # An order that comes before every API server has observed the change is not certain either.
    witness.observe_reading(reading(3), LATER + 4, 9.0)
    witness.observe_reading(reading(3), LATER + 7, 12.0)
    assert code(witness, LATER + 7) == "order-author-unproven"
    witness.observe_reading(reading(3), LATER + 20, 25.0)
    assert code(witness, LATER + 20) == ""
    assert witness.sighting == PolicySighting(policy="uid-ValidatingAdmissionPolicy/1", binding="b/3", since=LATER + 7)


@pytest.mark.parametrize("change", [{"generation": 5}, {"generation": 3, "uid": "c"}])
def test_another_generation_or_another_object_is_a_change(change: dict[str, Any]) -> None:
    settled = PolicySighting(policy="uid-ValidatingAdmissionPolicy/1", binding="b/3", since=WRITTEN)
    assert code(observed((reading(3), LATER, 0.0), before=settled), LATER) == ""
    witness = observed((reading(**change), LATER, 0.0), before=settled)
    assert code(witness, LATER) == "order-author-unproven"
    assert witness.sighting is None


def test_a_policy_that_differed_in_between_is_a_change() -> None:
    settled = PolicySighting(policy="uid-ValidatingAdmissionPolicy/1", binding="b/3", since=WRITTEN)
    policy, binding = stored()
    binding["metadata"] |= {"generation": 4, "uid": "b"}
    binding["spec"]["matchResources"] = {"namespaceSelector": {"matchLabels": {"no": "namespace"}}}
    witness = observed((PolicyReading(policy, binding), 0, 0.0), before=settled)
    assert code(witness, LATER) == "order-author-unproven"
    witness.observe_reading(reading(5), LATER, 5.0)
    assert code(witness, LATER) == "order-author-unproven"


def test_another_leader_goes_on_with_what_is_stored() -> None:
    first = observed((reading(3), WRITTEN, 0.0), (reading(3), WRITTEN, 6.0))
    assert first.sighting is not None
    witness = observed((reading(3), LATER, 1000.0), before=first.sighting)
    assert code(witness, LATER) == ""
