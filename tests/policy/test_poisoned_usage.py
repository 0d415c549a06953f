"""Poisoned usage or recommendations move requests only between a policy's `min` and `max`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import changed, decided, facts, pod, policies, policy, usage, workload
from trimtab.cluster import quantity

BOUNDED = policies(policy("{requests: {cpu: {from: usage, when: always, min: 20m, max: 2, otherwise: 50m}}}"))
CPU = "containers[app].requests.cpu"
AMOUNTS = st.integers(1, 10**15).map(lambda milli: f"{milli}m")


@given(AMOUNTS, AMOUNTS)
def test_whatever_usage_says_a_request_stays_between_min_and_max(one, other):
    low, high = sorted((one, other), key=quantity.parse)
    world = facts(usage(cpu=(low, high)), workload("Deployment/web"))
    values = changed(decided(pod(owner="Deployment/web"), BOUNDED, world))[CPU]
    assert quantity.parse("20m") <= quantity.parse(values) <= quantity.parse("2")


@pytest.mark.parametrize(("said", "request_"), [("1m", "20m"), ("900000", "2"), ("1", "1")])
def test_the_bounds_themselves(said, request_):
    world = facts(usage(cpu=(said, said)), workload("Deployment/web"))
    assert changed(decided(pod(owner="Deployment/web"), BOUNDED, world))[CPU] == request_
