"""Law: a review leaves nothing behind that only the garbage collector could free.

Each subject caches what was computed about it; where such a value leads back to its subject, every review costs memory
until the collector runs, and the collector's time. Seen once: a fifth of what a distinct pod costs.
"""

import gc

import pytest
from hypothesis import given, settings

from tests.build import NAMESPACE
from tests.property import strategies as some
from tests.property.drawn_outcomes import crowded_worlds
from trimtab.admission.pod_decision import decide_pod
from trimtab.policy.pod_context import PodContext


@pytest.fixture(scope="module", autouse=True)
def _objects_of_other_tests_stay():
    """Keep what other tests of this process left out of each collection, which takes most of the time otherwise."""
    gc.collect()
    gc.freeze()  # for good, as tests/conftest.py does with the tests themselves


@settings(max_examples=2 * settings().max_examples)
@given(some.manifests(), some.policies(), crowded_worlds())
def test_a_review_leaves_no_garbage(manifest, by, drawn):
    pod = some.read(manifest)
    decide_pod(
        PodContext(pod=pod, namespace=NAMESPACE, facts=drawn[0]), by
    )  # what is made of the policies and the cluster stays
    gc.collect()
    gc.disable()
    try:
        decide_pod(PodContext(pod=pod, namespace=NAMESPACE, facts=drawn[0]), by)
        assert gc.collect() == 0
    finally:
        gc.enable()
