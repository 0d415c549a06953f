"""Words for what teams ask for, on the real API server: the pod that is stored says what the policy says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.e2e.ours import Ours, following, kubectl
from trimtab.cluster.recommendation import PAYLOAD_KEY, RECOMMENDATIONS_LABEL, ContainerUsage, Percentiles, encode
from trimtab.policy.write_resources import ANNOTATION

Object = dict[str, Any]
MARK = '{labels: {add: {meant: "yes"}}}'
CLASS = "example.com/price-class"
LICENCE = "example.com/licence"


@pytest.fixture(scope="module")
def ours(whole_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ours]:
    with following(whole_cluster, tmp_path_factory.mktemp("ours")) as installation:
        yield installation


@pytest.fixture
def serving(ours: Ours, cluster: Cluster) -> Ours:
    ours.serves(cluster)
    return ours


def container(name: str = "main", **more: Any) -> Object:
    return {"name": name, "image": "pause", **more}


def asking(**requests: str) -> Object:
    return {"containers": [container(resources={"requests": requests})]}


def pod(spec: Object | None = None, name: str = "pod", **metadata: Object) -> Object:
    whole = {"containers": [container()], **(spec or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": whole}


def labels_of(stored: Object) -> Object:
    labels: Object = stored["metadata"].get("labels", {})
    return labels


def resources(stored: Object, name: str = "main") -> Object:
    [container] = [each for each in stored["spec"]["containers"] if each["name"] == name]
    return dict(container.get("resources", {}))


def requests(stored: Object) -> Object:
    requests: Object = resources(stored).get("requests", {})
    return requests


# Which pods are meant ------------------------------------------------------------------------------------------------

GPU = {"containers": [container(resources={"limits": {"nvidia.com/gpu": "1"}})]}
TWO = {"containers": [container(name, resources={"requests": {"cpu": "1500m"}}) for name in ("main", "proxy")]}


@pytest.mark.parametrize(
    ("match", "meant", "others"),
    [
        ("{requests: {cpu: {atLeast: 2}}}", asking(cpu="2"), asking(cpu="1999m")),
        ("{requests: {cpu: {atLeast: 2}}}", TWO, {}),
        ("{requests: {memory: {atLeast: 1Gi, below: 2Gi}}}", asking(memory="1Gi"), asking(memory="2Gi")),
        ("{requests: {nvidia.com/gpu: {exists: true}}}", GPU, asking(cpu="2")),
        ("{requests: {cpu: {absent: true}}}", {}, asking(cpu="2")),
        ("{containers: {requests: {cpu: {atLeast: 2}}}}", asking(cpu="2"), TWO),
        ('{serviceAccounts: ["ci-*"]}', {"serviceAccountName": "ci-tests"}, {}),
    ],
    ids=["cpu", "sum", "memory", "gpu", "absent", "one-container", "service-account"],
)
def test_pods_are_meant_by_what_they_ask_for_and_by_their_service_account(
    serving: Ours, cluster: Cluster, match: str, meant: Object, others: Object
) -> None:
    cluster.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "ci-tests"}})
    serving.policy(cluster, "meant", MARK, match)
    stored = [cluster.create(pod(spec, name)) for name, spec in (("meant", meant), ("other", others))]
    assert ["meant" in labels_of(each) for each in stored] == [True, False]


def test_pods_are_meant_by_their_annotations(serving: Ours, cluster: Cluster) -> None:
    serving.policy(cluster, "meant", MARK, f'{{annotations: {{{CLASS}: "low*"}}}}')
    written: list[Object] = [{"annotations": {CLASS: "lowest"}}, {"annotations": {CLASS: "high"}}, {}]
    stored = [cluster.create(pod(name=f"pod-{number}", **more)) for number, more in enumerate(written)]
    assert ["meant" in labels_of(each) for each in stored] == [True, False, False]


def test_image_and_request_together_mean_one_container(serving: Ours, cluster: Cluster) -> None:
    match = '{containers: {images: ["mesh/*"], requests: {memory: {absent: true}}}}'
    serving.policy(cluster, "proxies", "{requests: {memory: {from: policy, otherwise: 64Mi}}}", match)
    sized = {"requests": {"memory": "1Gi"}}
    three = [
        container(),
        container("proxy", image="mesh/proxy:1"),
        container("other", image="mesh/proxy:2", resources=sized),
    ]
    stored = cluster.create(pod({"containers": three}))
    assert [resources(stored, each["name"]) for each in three] == [{}, {"requests": {"memory": "64Mi"}}, sized]


# How much they get ---------------------------------------------------------------------------------------------------


def known(ours: Ours, cluster: Cluster) -> None:
    """What `main` of Deployment web uses, as the recommender publishes it."""
    cpu = Percentiles(p5="10m", p50="50m", p95="100m", p99="3", max="4", confidence=1.0)
    memory = Percentiles(
        p5="100Mi", p50="200Mi", p95="400Mi", p99="500Mi", max="800Mi", request="450Mi", confidence=1.0
    )
    usage = {
        f"{cluster.namespace}/Deployment/web": {"main": ContainerUsage(cpu=cpu, memory=memory, days=14, confidence=1.0)}
    }
    name = f"trimtab-recommendations-{cluster.namespace[-5:]}"
    metadata = {"name": name, "namespace": ours.namespace, "labels": {RECOMMENDATIONS_LABEL: "v1"}}
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {PAYLOAD_KEY: encode(usage)}})


def made_by_deployment(cluster: Cluster, **written: str) -> Object:
    cluster.deployment("web", **written)
    [stored] = cluster.eventually(lambda: cluster.list("Pod", selector="app=web"))
    result: Object = stored
    return result


@pytest.mark.parametrize(
    ("rule", "memory"),
    [
        ("adaptive", "450Mi"),
        ("p95", "400Mi"),
        ("p99", "500Mi"),
        ("max", "800Mi"),
        ("+15%", "518Mi"),
        ("p99 +15%", "575Mi"),
        ("max +15%", "920Mi"),
    ],
)
def test_a_rule_names_the_percentile_and_the_headroom(serving: Ours, cluster: Cluster, rule: str, memory: str) -> None:
    known(serving, cluster)
    serving.policy(cluster, "usage", f'{{requests: {{memory: {{from: usage, rule: "{rule}", otherwise: 1Mi}}}}}}')
    assert requests(made_by_deployment(cluster)) == {"memory": memory}


def test_usage_comes_before_a_default_request_of_the_namespace(serving: Ours, cluster: Cluster) -> None:
    """LimitRanger wrote it a step before, not the author: first requests would never come in such a namespace."""
    bounds = {"limits": [{"type": "Container", "defaultRequest": {"cpu": "33m"}}]}
    cluster.apply({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "guard"}, "spec": bounds})
    cluster.eventually(lambda: requests(cluster.create(pod(), dryRun="All")) == {"cpu": "33m"})
    known(serving, cluster)
    serving.policy(cluster, "usage", "{requests: {cpu: {from: usage, rule: p95}}}")
    assert requests(made_by_deployment(cluster)) == {"cpu": "100m"}


@pytest.mark.parametrize(
    ("words", "cpu"),
    [
        ("rule: p95, minPercent: 50%", "500m"),
        ("rule: p99, maxPercent: 100%", "1"),
        ("rule: p99, maxPercent: 150%", "1500m"),
        ("rule: p95, minPercent: 50%, min: 600m", "600m"),
    ],
)
def test_usage_stays_within_shares_of_the_written_request(
    serving: Ours, cluster: Cluster, words: str, cpu: str
) -> None:
    known(serving, cluster)
    serving.policy(cluster, "usage", f"{{requests: {{cpu: {{from: usage, when: always, {words}}}}}}}")
    assert requests(made_by_deployment(cluster, cpu="1")) == {"cpu": cpu}


@pytest.mark.parametrize(
    ("words", "written", "cpu"),
    [
        ("percent: 50%", "2", "1"),
        ("percent: 50%, min: 100m", "150m", "100m"),
        ("max: 500m", "4", "500m"),
        ("max: 500m", "200m", "200m"),
    ],
)
def test_a_share_or_a_cap_of_the_written_request(
    serving: Ours, cluster: Cluster, words: str, written: str, cpu: str
) -> None:
    serving.policy(cluster, "modest", f"{{requests: {{cpu: {{from: request, {words}}}}}}}")
    assert requests(cluster.create(pod(asking(cpu=written)))) == {"cpu": cpu}


def test_a_share_is_taken_once_of_what_the_author_wrote(serving: Ours, cluster: Cluster) -> None:
    """What is stored is created again, as by a backup: half of a half would be a quarter."""
    serving.policy(cluster, "half", "{requests: {cpu: {from: request, percent: 50%}}}")
    stored = cluster.create(pod(asking(cpu="2")))
    annotation = stored["metadata"]["annotations"][ANNOTATION]
    assert json.loads(annotation) == {"containers[main].requests.cpu": {"written": "2", "given": "1"}}
    second_result = cluster.create(pod(asking(**requests(stored)), "again", annotations={ANNOTATION: annotation}))
    assert requests(second_result) == {"cpu": "1"}


def test_local_storage_gets_a_request_and_a_limit_and_an_authors_own_limit_stays(
    serving: Ours, cluster: Cluster
) -> None:
    disk = "{requests: {ephemeral-storage: {otherwise: 1Gi}}, limits: {ephemeral-storage: request x 4}}"
    serving.policy(cluster, "disk", disk)
    own = {"requests": {"ephemeral-storage": "2Gi"}, "limits": {"ephemeral-storage": "100Gi"}}
    stored = [
        cluster.create(pod({"containers": [container(resources=values)]}, f"pod-{number}"))
        for number, values in enumerate(({}, own))
    ]
    actual_values = {"requests": {"ephemeral-storage": "1Gi"}, "limits": {"ephemeral-storage": "4Gi"}}
    assert [resources(each) for each in stored] == [actual_values, own]


def test_a_scratch_volume_ends_unless_its_author_says_otherwise(serving: Ours, cluster: Cluster) -> None:
    serving.policy(cluster, "scratch", "{emptyDirs: {sizeLimit: 10Gi, medium: [disk]}}")
    volumes: list[Object] = [
        {"name": "scratch", "emptyDir": {}},
        {"name": "shm", "emptyDir": {"medium": "Memory"}},
        {"name": "own", "emptyDir": {"sizeLimit": "40Gi"}},
        {"name": "unnamed-source"},
    ]
    stored = cluster.create(pod({"volumes": volumes}))["spec"]["volumes"]
    ends = {each["name"]: each["emptyDir"].get("sizeLimit") for each in stored if "emptyDir" in each}
    assert ends == {"scratch": "10Gi", "shm": None, "own": "40Gi", "unnamed-source": "10Gi"}


def test_an_extended_resource_is_request_and_limit_of_the_containers_that_are_meant(
    serving: Ours, cluster: Cluster
) -> None:
    solvers = "{containers: {images: ['solver/*']}}"
    serving.policy(cluster, "licence", f"{{requests: {{extended: {{{LICENCE}: 1}}}}}}", solvers)
    two = {"requests": {LICENCE: "2"}, "limits": {LICENCE: "2"}}
    three = [
        container(),
        container("solver", image="solver/flow:7"),
        container("wide", image="solver/flow:7", resources=two),
    ]
    stored = cluster.create(pod({"containers": three}))
    one = {"requests": {LICENCE: "1"}, "limits": {LICENCE: "1"}}
    assert [resources(stored, each["name"]) for each in three] == [{}, one, two]


# Values of the namespace and of the pod ------------------------------------------------------------------------------

OF_NAMESPACE = """{placement: {require: [{label: pool, inNamespaceLabel: team}],
 tolerate: [{key: pool, valueFromNamespace: team, effect: NoSchedule}]}, labels: {fromNamespace: {billing: team}}}"""
OF_POD = """{placement: {require: [{label: pool, inPodLabel: machine, among: [small, large]}],
 tolerate: [{key: pool, valueFromPod: machine, among: [small, large], effect: NoSchedule}]},
 labels: {fromPod: {billed-machine: {label: machine, among: [small, large]}}}}"""


def tainted(cluster: Cluster, *names: str) -> None:
    for name in names:
        cluster.pool(name, taints=[f"pool={name}:NoSchedule"])


def node_of(cluster: Cluster, name: str = "pod") -> str:
    return str(cluster.eventually(lambda: cluster.get("Pod", name)["spec"].get("nodeName"), what=f"{name} has a node"))


def pools_that_are_tolerated(stored: Object) -> list[str]:
    return [each["value"] for each in stored["spec"]["tolerations"] if each["key"] == "pool"]


def test_a_namespaces_label_names_the_pool_of_its_pods(serving: Ours, cluster: Cluster) -> None:
    cluster.some_nodes()
    tainted(cluster, "blue", "red")
    serving.policy(cluster, "teams", OF_NAMESPACE)
    cluster.patch("Namespace", cluster.namespace, {"metadata": {"labels": {"team": "blue"}}})
    cluster.eventually(lambda: labels_of(cluster.create(pod(), dryRun="All")).get("billing") == "blue")
    stored = cluster.create(pod(labels={"team": "red"}))
    assert (labels_of(stored)["billing"], pools_that_are_tolerated(stored)) == ("blue", ["blue"])
    assert node_of(cluster) == "blue-0"


def test_a_namespace_without_the_label_places_nothing_whatever_the_pods_own_label_says(
    serving: Ours, cluster: Cluster
) -> None:
    cluster.some_nodes()
    tainted(cluster, "green")
    serving.policy(cluster, "teams", OF_NAMESPACE)
    client = kubectl(cluster, "create", "-f", "-", stdin=pod(labels={"team": "green"}))
    stored = cluster.get("Pod", "pod")
    assert ("namespace-label-missing" in client.err, pools_that_are_tolerated(stored)) == (True, [])
    assert node_of(cluster).startswith("any-")


def test_a_pods_label_chooses_among_the_values_that_the_policy_lists(serving: Ours, cluster: Cluster) -> None:
    cluster.some_nodes()
    tainted(cluster, "small", "large", "gold")
    serving.policy(cluster, "machines", OF_POD)
    stored = cluster.create(pod(labels={"machine": "large"}))
    assert (labels_of(stored)["billed-machine"], pools_that_are_tolerated(stored)) == ("large", ["large"])
    client = kubectl(cluster, "create", "-f", "-", stdin=pod(name="other", labels={"machine": "gold"}))
    assert ("pod-label-not-listed" in client.err, pools_that_are_tolerated(cluster.get("Pod", "other"))) == (True, [])
    assert node_of(cluster) == "large-0"
    assert node_of(cluster, "other").startswith("any-")


# Scheduler, end and places -------------------------------------------------------------------------------------------


def test_the_scheduler_is_named_where_the_author_named_none(serving: Ours, cluster: Cluster) -> None:
    lease = f"{cluster.namespace}/packs"
    serving.policy(cluster, "packs", f"{{schedulerName: {{name: packing-scheduler, lease: {lease}}}}}")

    def scheduler_of(name: str, spec: Object) -> str:
        stored = cluster.create(pod(spec, name))
        cluster.delete("Pod", name)
        return str(stored["spec"]["schedulerName"])

    assert scheduler_of("before", {}) == "default-scheduler"
    holding = {"holderIdentity": "replica", "leaseDurationSeconds": 15, "renewTime": "2999-01-01T00:00:00.000000Z"}
    lease_object = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "packs"}}
    cluster.create({**lease_object, "spec": holding})
    cluster.eventually(lambda: scheduler_of("pod", {}) == "packing-scheduler", within=20)
    assert scheduler_of("own", {"schedulerName": "mine"}) == "mine"
    cluster.patch("Lease", "packs", {"spec": {"renewTime": "2020-01-01T00:00:00.000000Z"}})
    cluster.eventually(lambda: scheduler_of("after", {}) == "default-scheduler", within=20)


def test_the_time_to_end_is_kept_between_bounds(serving: Ours, cluster: Cluster) -> None:
    serving.policy(cluster, "ends", "{terminationGracePeriod: {minSeconds: 10, maxSeconds: 600}}")
    stored = [
        cluster.create(pod({"terminationGracePeriodSeconds": seconds}, f"pod-{seconds}")) for seconds in (0, 30, 86400)
    ]
    assert [each["spec"]["terminationGracePeriodSeconds"] for each in stored] == [10, 30, 600]


ANY = """{placement: {requireAny: [[{label: kubernetes.io/arch, in: [arm64]}],
 [{label: kubernetes.io/arch, in: [amd64]}, {label: machine-generation, above: 7}]]}}"""


def terms_of(stored: Object) -> list[list[str]]:
    required = stored["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    terms: list[Object] = required["nodeSelectorTerms"]
    return [
        [" ".join([e["key"], e["operator"], *e.get("values", ())]) for e in term["matchExpressions"]] for term in terms
    ]


def test_a_pod_runs_where_any_of_several_groups_holds(serving: Ours, cluster: Cluster) -> None:
    cluster.pool("old", labels={"machine-generation": "6"})
    cluster.pool("new", labels={"machine-generation": "8"})
    serving.policy(cluster, "cheap", ANY)
    stored = cluster.create(pod())
    amd = ["kubernetes.io/arch In amd64", "machine-generation Gt 7"]
    assert terms_of(stored) == [["kubernetes.io/arch In arm64"], amd]
    assert node_of(cluster) == "new-0"


def test_each_of_a_pods_own_terms_gets_each_group(serving: Ours, cluster: Cluster) -> None:
    cluster.pool("newest", labels={"machine-generation": "9", "zone": "b"})
    serving.policy(cluster, "cheap", ANY)
    own = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in ("a", "b")]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": own}}
    stored = cluster.create(pod({"affinity": {"nodeAffinity": required}}))
    arm, amd = ["kubernetes.io/arch In arm64"], ["kubernetes.io/arch In amd64", "machine-generation Gt 7"]
    expected = [[f"zone In {zone}", *group] for zone in ("a", "b") for group in (arm, amd)]
    assert sorted(map(sorted, terms_of(stored))) == sorted(map(sorted, expected))
    assert node_of(cluster) == "newest-0"
