import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import container, pod
from trimtab.admission.apiserver import resource_sums
from trimtab.cluster import quantity
from trimtab.cluster.resources import requests_of

WRITTEN = st.sampled_from(["0", "100m", "1", "1.5", "1e3", "1k", "64Mi", "0.5Gi", "1000Ki", "3n"])


@pytest.mark.parametrize(
    ("a", "b", "total"),
    [
        ("100m", "0.3", "400m"),
        ("512Mi", "1", "536870913"),
        ("512Mi", "512Mi", "1Gi"),
        ("1", "512Mi", "536870913"),
        ("0", "512Mi", "512Mi"),
        ("1e3", "1k", "2e3"),
        ("512Mi", "100m", "536870912100m"),
    ],
)
def test_a_sum_is_written_like_its_first_part(a, b, total):
    assert resource_sums.add_quantities(a, b) == total


@given(WRITTEN, WRITTEN)
def test_a_sum_is_exact(a, b):
    assert quantity.parse(resource_sums.add_quantities(a, b)) == quantity.parse(a) + quantity.parse(b)


def test_an_init_container_starts_beside_the_sidecars_before_it():
    init = (
        container("one", requests={"cpu": "1"}),
        container("mesh", requests={"cpu": "2"}, restart_policy="Always"),
        container("two", requests={"cpu": "3"}),
    )
    assert resource_sums.sum_containers(pod(container(requests={"cpu": "1"}), init=init).spec, requests_of) == {
        "cpu": "5"
    }
