"""A decision that is shared wrongly is found by the arrivals of `drawn_arrivals`: each way to share too much is planted
here once, and at least one arrival gets another answer than without memory."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tests.admission.drawn_arrivals import MAKERS, Arrival, Arrivals
from tests.build import admission_context
from trimtab.admission import handler, template_cache
from trimtab.admission.handler import answer_review
from trimtab.admission.response_cache import ResponseCache
from trimtab.policy.decision_reads import FactDependencies, Freshness

COUNT, SEEDS = 600, range(1, 13)


class Fault(NamedTuple):
    """Something that a cache no longer compares, and arrivals that find it."""

    owner: Any
    name: str
    wrong: Callable[..., Any]
    kind: str


_encode_parts = handler.encode_parts


class _MaskingPolicies:
    """Policies none of which reads the tags of images."""

    def compute_once(self, _: object) -> bool:
        return False


def _encode_without_tags(pod: Any, _: object) -> Any:
    return _encode_parts(pod, _MaskingPolicies())  # type: ignore[arg-type]


FAULTS = {
    "labels and annotations": Fault(template_cache, "_has_same_metadata", lambda *_: True, "statefulset"),
    "owners, and tests of their names": Fault(template_cache, "_has_like_owners", lambda *_: True, "job"),
    "the rollout of a policy": Fault(template_cache, "rollout_place", lambda *_: 0, "workflow"),
    "facts": Fault(FactDependencies, "has_same_answers", lambda *_: True, "bare"),
    "facts by the owner's name": Fault(template_cache, "_renamed_keys", lambda *_: {}, "replicaset"),
    "facts for the same pod": Fault(FactDependencies, "check_freshness", lambda *_: Freshness.SAME, "replicaset"),
    "tags of images": Fault(handler, "encode_parts", _encode_without_tags, "job"),
    "the shape of the node": Fault(handler, "read_shapes", lambda *_: None, "daemonset"),
    "the name of the node": Fault(handler, "is_of_any_node", lambda *_: True, "daemonset"),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_what_is_shared_wrongly_is_found(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most are found by the first 600 arrivals of a seed, all by 7 200."""

    def is_found_by(seed: int) -> bool:
        memory, arrivals = ResponseCache(), Arrivals(fault.kind, seed).draw(COUNT)
        return any(_is_answered_otherwise(arrival, memory, fault, monkeypatch) for arrival in arrivals)

    assert any(map(is_found_by, SEEDS))


def _is_answered_otherwise(
    arrival: Arrival, memory: ResponseCache, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> bool:
    body, policies, world, settings = arrival
    cold = answer_review(body, admission_context(policies, world, settings=settings))
    with monkeypatch.context() as planted:
        planted.setattr(fault.owner, fault.name, fault.wrong)
        warm = answer_review(body, admission_context(policies, world, settings=settings, memory=memory))
    return warm.body != cold.body


def test_each_kind_of_arrival_finds_a_fault() -> None:
    assert {fault.kind for fault in FAULTS.values()} == set(MAKERS)
