"""The law of all memory: an arriving pod gets what it would get without it. A few hundred arrivals of each kind of
owner here, a hundred thousand of each with `make fuzz`."""

import os

import pytest

from tests.admission.drawn_arrivals import MAKERS, Arrivals
from tests.build import admission_context
from trimtab.admission.handler import answer_review
from trimtab.admission.response_cache import ResponseCache
from trimtab.cluster.api.meta import UNSET, change
from trimtab.policy.decide import Decision

LONGER = "FUZZ_LONGER" in os.environ
COUNT = 12_500 if LONGER else 600
SEED = int(os.environ.get("FUZZ_SEED", "1"))
SHARES = range(SEED, SEED + (8 if LONGER else 1))


@pytest.mark.parametrize("seed", SHARES)
@pytest.mark.parametrize("kind", MAKERS)
def test_each_arrival_gets_its_own_answer(kind, seed):
    memory = ResponseCache()
    for number, (body, by, world, settings) in enumerate(Arrivals(kind, seed).draw(COUNT)):
        warm = answer_review(body, admission_context(by, world, settings=settings, memory=memory))
        cold = answer_review(body, admission_context(by, world, settings=settings))
        assert warm.body == cold.body, f"arrival {number} of {kind}, seed {seed}"
        assert _without_masked(warm.record.decision) == _without_masked(cold.record.decision)


def _without_masked(decision: Decision | None) -> Decision | None:
    """The decision without the pod's token volume and affinity: pods that differ in the name of their token volume or
    of their node share one decision."""
    if decision is None:
        return None
    spec = decision.pod.spec
    volumes = tuple(volume for volume in spec.volumes if not volume.name.startswith("kube-api-access-"))
    return change(decision, pod=change(decision.pod, spec=change(spec, volumes=volumes, affinity=UNSET)))
