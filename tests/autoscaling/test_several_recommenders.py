"""Several recommenders of the VPA in one cluster: the flags of a VPA's own one count."""

from typing import Any

from tests.autoscaling.test_rule_details import find, vpa, workload


def recommender(name: str, *flags: str) -> dict[str, Any]:
    container = {"name": "recommender", "image": "registry.example.com/vpa-recommender:1.6.0", "args": list(flags)}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {"template": template},
    }


DEFAULT = recommender("vpa-recommender", "--pod-recommendation-min-cpu-millicores=10")
GENEROUS = recommender(
    "vpa-recommender-generous", "--recommender-name=generous", "--pod-recommendation-min-cpu-millicores=100"
)
NAMED = {"recommenders": [{"name": "generous"}]}


def codes(*manifests: dict[str, Any]) -> list[str]:
    return [one.rule for one in find("L18", workload(replicas=3), *manifests) if "of cpu" in one.sentence]


def test_a_vpa_that_names_a_recommender_has_that_ones_minimum() -> None:
    for order in ((DEFAULT, GENEROUS), (GENEROUS, DEFAULT)):
        assert codes(vpa(**NAMED), *order) == ["L18"]
        assert codes(vpa(), *order) == []


def test_of_a_recommender_that_is_not_among_the_objects_no_minimum_is_claimed() -> None:
    assert codes(vpa(**NAMED), DEFAULT) == []
    assert codes(vpa()) == ["L18"]
