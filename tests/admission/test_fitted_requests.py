"""Requests for the containers of one pod, within pod-level resources, LimitRanges for pods, and quotas."""

import pytest

from tests.build import NAMESPACE, container, facts, limit_range, pod, quota, resources
from trimtab.admission.fitted_requests import FittedRequests, ProposedAmounts, fit_requests, share_pod_level
from trimtab.cluster.api.core import ApiObject
from trimtab.cluster.api.pod import Pod

APP, PROXY = ("app", "cpu"), ("proxy", "cpu")


def two(**whole: dict[str, str]) -> Pod:
    """A pod whose containers request 500m and 100m."""
    level = {"resources": resources(**whole)} if whole else {}
    return pod(container(requests={"cpu": "500m"}), container("proxy", requests={"cpu": "100m"}), **level)


def fit(subject: Pod, *objects: ApiObject, app: int | None = None, proxy: int | None = None) -> FittedRequests:
    proposed = {key: ProposedAmounts(amount) for key, amount in ((APP, app), (PROXY, proxy)) if amount is not None}
    return fit_requests(subject, facts(*objects), NAMESPACE, proposed)


def requests_of(fitted: FittedRequests) -> dict[tuple[str, str], int]:
    return {key: amounts.request for key, amounts in fitted.changes.items()}


def codes(fitted: FittedRequests) -> set[str]:
    return {reason.code.name for reason in fitted.reasons.values()}


def test_the_pod_level_request_rises_with_the_sum() -> None:
    fitted = fit(two(requests={"cpu": "1"}), app=1500)
    assert (requests_of(fitted), fitted.pod_requests) == ({APP: 1500}, {"cpu": 1600})
    assert codes(fitted) == {"pod-level-request-rises"}


def test_a_sum_within_the_pod_level_request_changes_nothing_else() -> None:
    fitted = fit(two(requests={"cpu": "1"}), app=900, proxy=50)
    assert (requests_of(fitted), fitted.pod_requests, codes(fitted)) == ({APP: 900, PROXY: 50}, {}, set())


def test_raises_share_what_the_pod_level_limit_leaves() -> None:
    """1400m remain for raises of 2000m and 800m."""
    fitted = fit(two(requests={"cpu": "1"}, limits={"cpu": "2"}), app=2500, proxy=900)
    assert (requests_of(fitted), fitted.pod_requests) == ({APP: 1500, PROXY: 500}, {"cpu": 2000})
    assert codes(fitted) == {"pod-level-limit"}


def test_without_room_no_request_rises() -> None:
    fitted = fit(two(requests={"cpu": "600m"}, limits={"cpu": "600m"}), app=2500, proxy=50)
    assert (requests_of(fitted), fitted.pod_requests) == ({APP: 550, PROXY: 50}, {})
    assert requests_of(fit(two(limits={"cpu": "600m"}), app=2500)) == {}


def test_a_sum_above_what_a_limit_range_allows_for_pods_is_left_out() -> None:
    bounds = limit_range(kind="Pod", max={"cpu": "1"})
    subject = pod(container(requests={"cpu": "500m"}, limits={"cpu": "1"}))
    assert requests_of(fit(subject, bounds, app=900)) == {APP: 900}
    small = limit_range(kind="Pod", min={"cpu": "400m"})
    fitted = fit(two(), small, app=200)
    assert (requests_of(fitted), codes(fitted)) == ({}, {"request-refused"})


def test_one_resource_is_left_out_and_the_other_is_not() -> None:
    small = limit_range(kind="Pod", min={"cpu": "400m"})
    changes = {APP: ProposedAmounts(200), ("app", "memory"): ProposedAmounts(1 << 30)}
    fitted = fit_requests(two(), facts(small), NAMESPACE, changes)
    assert (set(fitted.changes), set(fitted.reasons)) == ({("app", "memory")}, {APP})


@pytest.mark.parametrize(("used", "is_changed"), [("0", False), ("2", True)])
def test_a_quota_that_is_full_in_any_case_does_not_keep_a_request(used: str, is_changed: bool) -> None:
    """Even a request that falls does not fit then, and it is what helps."""
    full = quota({"requests.cpu": "2"}, used={"requests.cpu": used})
    fitted = fit(two(), full, app=400 if is_changed else 3000)
    assert (requests_of(fitted) != {}) is is_changed


def test_what_a_pod_requests_is_its_pod_level_request() -> None:
    amounts = {"app": 500, "proxy": 100}
    assert share_pod_level(two(requests={"cpu": "1200m"}).spec, "cpu", amounts) == {"app": 1000, "proxy": 200}
    assert share_pod_level(two().spec, "cpu", amounts) == amounts
    assert share_pod_level(two(requests={"cpu": "1"}).spec, "cpu", {"app": 0, "proxy": 0}) == {"app": 1000, "proxy": 0}


def test_a_pod_does_not_become_guaranteed_by_its_requests() -> None:
    """As by policies: the class decides which pods are evicted first, and to which cpus a pod is bound."""
    subject = pod(container(requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "1", "memory": "2Gi"}))
    changes = {("app", "memory"): ProposedAmounts(2 << 30), APP: ProposedAmounts(1000)}
    fitted = fit_requests(subject, facts(), NAMESPACE, changes)
    assert (set(fitted.changes), codes(fitted)) == ({APP}, {"qos-would-change"})
