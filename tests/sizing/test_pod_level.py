"""One request for all containers of a pod: where it is refused, and how much it is."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reasons import assert_reason
from tests.sizing.worlds import used
from trimtab.cluster.reason import NotYet, Reason
from trimtab.cluster.usage_rule import UsageRule
from trimtab.cluster.whole_pods import parse_kubelet_version
from trimtab.histogram.pod_sums import average_containers
from trimtab.policy.pod_level.obstacles import KubeletVersions, PodLevelSubject
from trimtab.sizing import reasons
from trimtab.sizing.pod_level import PodLevelProposal, propose_pod_level

MI = 1 << 20
POD = PodLevelSubject(resource="cpu", containers=3, separate=3000)
AVERAGE = used(p95=0.5)
UNKNOWN = NotYet(reason=reasons.NO_USAGE("nothing"), have="nothing", need="an hour")

REFUSALS: list[tuple[str, dict[str, Any]]] = [
    ("pod-level-one-container", {"containers": 1}),
    ("pod-level-already-set", {"has_pod_level": True}),
    ("pod-level-guaranteed", {"is_guaranteed": True}),
    ("pod-level-windows", {"is_windows": True}),
    ("pod-level-huge-pages", {"has_huge_pages": True}),
    ("pod-level-next-to-vpa", {"vpa": "web"}),
    ("pod-level-next-to-hpa", {"hpa": "web"}),
    ("pod-level-next-to-container-hpa", {"container_hpa": "web"}),
    ("pod-level-needs-kubelet", {"kubelets": KubeletVersions(nodes=2, older=("old",))}),
    ("pod-level-needs-kubelet", {"kubelets": KubeletVersions(nodes=2, unknown=("odd",))}),
    ("pod-level-needs-kubelet", {"kubelets": KubeletVersions()}),
    ("pod-level-below-default", {"default_by": "sizes", "default_request": 600}),
    ("pod-level-saves-nothing", {"separate": 1500}),
]


def proposed(resource: str = "cpu", statistics: Any = AVERAGE, **other: Any) -> PodLevelProposal | Reason | NotYet:
    kubelets = other.pop("kubelets", KubeletVersions(nodes=2))
    return propose_pod_level(replace(POD, resource=resource, **other), kubelets, statistics, UsageRule())


@pytest.mark.parametrize(("code", "other"), REFUSALS)
def test_a_pod_that_must_not_request_as_a_whole_is_refused_with_the_reason(code: str, other: dict[str, Any]) -> None:
    result = proposed(**other)
    assert isinstance(result, Reason)
    assert_reason(result, code)


def test_without_any_of_them_the_request_is_that_of_the_average_container_times_their_number() -> None:
    result = proposed()
    assert isinstance(result, PodLevelProposal)
    assert result.request == 1500
    assert_reason(result, "from-sum-of-containers", containers=3, pod="1500m", separate=3)


def test_a_default_request_that_is_small_enough_is_no_obstacle() -> None:
    assert isinstance(proposed(default_by="sizes", default_request=500), PodLevelProposal)


def test_what_is_not_known_is_no_zero() -> None:
    assert proposed(statistics=UNKNOWN) is UNKNOWN
    assert isinstance(proposed(statistics=UNKNOWN, vpa="web"), Reason), "a refusal needs no usage"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("v1.36.2", (1, 36)),
        ("v1.34.1-eks-113cf36", (1, 34)),
        ("1.35", (1, 35)),
        ("v1.34+", (1, 34)),
        ("", None),
        ("kubeedge", None),
        ("v1", None),
        ("v9999.1", None),
        ("v1.٣4", None),
    ],
)
def test_a_kubelets_version_is_read_or_is_not_known(text: str, version: tuple[int, int] | None) -> None:
    assert parse_kubelet_version(text) == version


@given(st.floats(0.001, 50), st.integers(2, 20), st.integers(1, 10**7))
def test_a_proposal_covers_the_sum_and_saves(p95: float, containers: int, separate: int) -> None:
    result = proposed(statistics=used(p95=p95), containers=containers, separate=separate)
    if isinstance(result, PodLevelProposal):
        assert containers * p95 * 1000 - 1e-3 <= result.request < separate
    else:
        assert_reason(result, "pod-level-saves-nothing")


def test_only_moments_of_which_each_container_has_a_value_are_averaged() -> None:
    times, values = average_containers([{0: 1.0, 60: 2.0, 120: 3.0}, {60: 4.0, 120: 1.0, 180: 9.0}])
    assert (times, values) == ([60, 120], [3.0, 2.0])
    assert average_containers([{0: 1.0}, {60: 1.0}]) == ([], [])
