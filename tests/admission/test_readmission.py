"""What would an owner's next pod ask for?"""

import msgspec
import pytest

from tests.build import admission_context, owner_key
from tests.reasons import has_facts
from trimtab.admission.readmission import admit_next_pod
from trimtab.cluster.api.autoscaling import VerticalPodAutoscaler, VPAStatus
from trimtab.cluster.api.meta import change
from trimtab.cluster.api.pod import Container, PodSpec, Resources
from trimtab.cluster.api.workload import PodTemplateSpec
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.recommendation import ContainerUsage, Percentiles, Recommendations
from trimtab.cluster.resources import Amounts
from trimtab.cluster.timestamps import Seconds
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.load import load_policies
from trimtab.policy.podpolicy import Policies

WEB = owner_key("ReplicaSet/web-5d4", "team")
RAISE = "requests: {cpu: {from: policy, otherwise: 1500m, when: always}}"


def requests_if_readmitted(
    template: PodTemplateSpec, owner: OwnerKey, policies: Policies, cluster: ClusterFacts, now: Seconds | None = None
) -> Amounts | Unreadable:
    next_pod = admit_next_pod(template, owner, admission_context(policies, cluster), now)
    return next_pod if isinstance(next_pod, Unreadable) else next_pod.requests


def policies(actions: str, match: str = "{namespaces: {include: [team]}}") -> Policies:
    text = f"apiVersion: trimtab.dev/v1alpha1\nkind: PodPolicy\nmetadata: {{name: one}}\nspec:\n  match: {match}\n"
    loaded = load_policies([("one.yaml", f"{text}  actions: {{{actions}}}\n".encode())])
    assert not loaded.mistakes, loaded.mistakes
    return loaded.policies


def half_a_core() -> PodTemplateSpec:
    asks = Resources(requests={"cpu": "500m", "memory": "64Mi"})
    return PodTemplateSpec(spec=PodSpec(containers=(Container(name="main", image="pause", resources=asks),)))


def test_without_a_policy_for_it_it_asks_what_its_template_says():
    requests = requests_if_readmitted(half_a_core(), WEB._replace(namespace="other"), policies(RAISE), ClusterFacts())
    assert requests == {"cpu": 500, "memory": 64 << 20}


def test_a_policy_of_today_raises_what_it_asks():
    requests = requests_if_readmitted(half_a_core(), WEB, policies(RAISE), ClusterFacts())
    assert requests == {"cpu": 1500, "memory": 64 << 20}


def test_a_pod_that_would_be_denied_has_no_request_at_all():
    stray = change(half_a_core(), spec=change(half_a_core().spec, overhead={"cpu": "1"}))
    requests = requests_if_readmitted(stray, WEB, policies("overhead: {stray: deny}"), ClusterFacts())
    assert isinstance(requests, Unreadable)
    assert has_facts(str(requests), "ReplicaSet team/web-5d4", "deny")


def managed(mode: str = "Recreate", **more: object) -> ClusterFacts:
    """Facts with one VPA of the ReplicaSet, which recommends two cores for `main`."""
    shape = {
        "metadata": {"name": "web", "namespace": "team", "creationTimestamp": "2026-01-02T00:00:00Z"},
        "spec": {"targetRef": {"kind": "ReplicaSet", "name": "web-5d4"}, "updatePolicy": {"updateMode": mode}, **more},
        "status": {"recommendation": {"containerRecommendations": [{"containerName": "main", "target": {"cpu": "2"}}]}},
    }
    result = msgspec.convert(shape, VerticalPodAutoscaler)
    return ClusterFacts(vpas={("team", "ReplicaSet", "web-5d4"): (result,)}, vpa_reach=())


@pytest.mark.parametrize(("mode", "cpu"), [("Off", 1500), ("Initial", 2000), ("Recreate", 2000), ("InPlace", 2000)])
def test_the_largest_of_template_policy_and_target_counts(mode: str, cpu: int) -> None:
    assert requests_if_readmitted(half_a_core(), WEB, policies(RAISE), managed(mode)) == {
        "cpu": cpu,
        "memory": 64 << 20,
    }


def test_a_target_counts_within_what_its_vpa_allows_and_controls() -> None:
    def cpu(policy: dict[str, object]) -> object:
        facts = managed(resourcePolicy={"containerPolicies": [{"containerName": "*", **policy}]})
        requests = requests_if_readmitted(half_a_core(), WEB, Policies(), facts)
        return requests["cpu"] if isinstance(requests, dict) else requests

    assert cpu({"maxAllowed": {"cpu": "1"}}) == 1000
    assert cpu({"mode": "Off"}) == 500
    assert cpu({"controlledResources": ["memory"]}) == 500


def recommending(mode: str, upper: str, **more: object) -> ClusterFacts:
    """Facts with a VPA of the ReplicaSet, which recommends two cores for `main`, and at most `upper`."""
    [vpa] = managed(mode, **more).vpas["team", "ReplicaSet", "web-5d4"]
    text = {"containerName": "main", "target": {"cpu": "2"}, "upperBound": {"cpu": upper}}
    status = msgspec.convert({"recommendation": {"containerRecommendations": [text]}}, VPAStatus)
    grown = msgspec.structs.replace(vpa, status=status)
    return ClusterFacts(vpas={("team", "ReplicaSet", "web-5d4"): (grown,)}, vpa_reach=())


@pytest.mark.parametrize(
    ("mode", "upper", "cpu"),
    [
        ("Recreate", "2500m", 2000),
        ("Initial", "2500m", 2000),
        ("InPlaceOrRecreate", "2500m", 2500),
        ("InPlace", "2500m", 2500),
        ("InPlace", "20", 3000),
        ("InPlace", "1", 2000),
    ],
)
def test_a_pod_that_is_resized_where_it_runs_counts_with_room_to_grow(mode: str, upper: str, cpu: int) -> None:
    requests = requests_if_readmitted(half_a_core(), WEB, Policies(), recommending(mode, upper))
    assert isinstance(requests, dict)
    assert requests["cpu"] == cpu


def test_it_grows_within_what_its_vpa_allows() -> None:
    most = {"containerPolicies": [{"containerName": "*", "maxAllowed": {"cpu": "2200m"}}]}
    requests = requests_if_readmitted(
        half_a_core(), WEB, Policies(), recommending("InPlace", "20", resourcePolicy=most)
    )
    assert isinstance(requests, dict)
    assert requests["cpu"] == 2200


def asking_nothing(*names: str) -> PodTemplateSpec:
    return PodTemplateSpec(spec=PodSpec(containers=tuple(Container(name=name, image="pause") for name in names)))


def used(container: str, cpu: str, memory: str) -> ClusterFacts:
    """Facts with two weeks of usage of one container of the ReplicaSet."""
    amounts = {"cpu": Percentiles(p5="1m", p95=cpu), "memory": Percentiles(p5="1Mi", p95=memory)}
    usage = {"team/ReplicaSet/web-5d4": {container: ContainerUsage(**amounts)}}
    return ClusterFacts(recommendations=Recommendations(workloads=usage))


def test_a_pod_that_asks_for_nothing_counts_with_what_it_is_known_to_use() -> None:
    requests = requests_if_readmitted(asking_nothing("main"), WEB, Policies(), used("main", "750m", "300Mi"))
    assert requests == {"cpu": 750, "memory": 300 << 20}


def test_of_what_a_pod_asks_for_its_usage_does_not_count() -> None:
    requests = requests_if_readmitted(half_a_core(), WEB, Policies(), used("main", "750m", "300Mi"))
    assert requests == {"cpu": 500, "memory": 64 << 20}


def test_where_the_usage_of_one_container_is_unknown_that_of_the_pod_is() -> None:
    template = asking_nothing("main", "proxy")
    requests = requests_if_readmitted(template, WEB, Policies(), used("main", "750m", "300Mi"))
    assert requests == {}


@pytest.mark.parametrize("mode", ["Off", "Recreate"])
def test_the_target_of_any_vpa_is_known_usage_of_a_pod_that_asks_for_nothing(mode: str) -> None:
    requests = requests_if_readmitted(asking_nothing("main"), WEB, Policies(), managed(mode))
    assert requests == {"cpu": 2000}
