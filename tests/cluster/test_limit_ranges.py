import pytest

from tests.build import container, item, limit_range, pod
from tests.hostile.cost import lines
from trimtab.cluster.limit_ranges import container_bounds, limit_range_broken_by_pod, with_defaults


def test_a_maximum_is_the_default_limit_and_that_the_default_request():
    limits = with_defaults(item(max={"cpu": "2"}))
    assert (limits.default, limits.default_request) == ({"cpu": "2"}, {"cpu": "2"})


def test_a_minimum_is_the_default_request_where_there_is_no_default_limit():
    assert with_defaults(item(min={"cpu": "1"})).default_request == {"cpu": "1"}


def test_an_item_for_pods_has_no_defaults():
    assert with_defaults(item("Pod", max={"cpu": "2"})).default == {}


def test_of_several_ranges_the_tightest_counts_and_is_named():
    ranges = [
        limit_range(name="wide", max={"cpu": "4"}, min={"cpu": "1m"}),
        limit_range(name="tight", max={"cpu": "2"}),
    ]
    cpu = container_bounds(ranges)["cpu"]
    assert (cpu.max.by, cpu.min.by, cpu.default.by) == ("tight", "wide", "wide")


@pytest.mark.parametrize(
    ("bounds", "broken"),
    [
        ({"max": {"cpu": "3"}}, None),
        ({"max": {"cpu": "1500m"}}, "bounds"),
        ({"min": {"cpu": "1"}}, None),
        ({"min": {"cpu": "1100m"}}, "bounds"),
        ({"max_limit_request_ratio": {"cpu": "2"}}, None),
        ({"max_limit_request_ratio": {"cpu": "1.9"}}, "bounds"),
        ({"max": {"memory": "1Gi"}}, None),
    ],
)
def test_bounds_for_pods_hold_for_the_sums(bounds, broken):
    half = {"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}}
    result = limit_range_broken_by_pod(
        [limit_range(kind="Pod", **bounds)], pod(container(**half), container("b", **half)).spec, "cpu"
    )
    assert result == broken


def test_what_containers_name_beside_the_resource_in_question_costs_nothing():
    def asked(count):
        many = {f"example.com/d{number}": "1" for number in range(count)}
        sidecar = container("s", requests={"cpu": "1"}, limits=many, restart_policy="Always")
        spec = pod(container(requests={"cpu": "1", **many}), init=(sidecar,)).spec
        return lambda: limit_range_broken_by_pod([limit_range(kind="Pod", max={"cpu": "1"})], spec, "cpu")

    assert asked(3)() == asked(300)() == "bounds"
    assert lines(asked(300)) == lines(asked(3))
