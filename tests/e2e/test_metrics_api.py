"""The metrics API under a real API server: who may ask, the same answers as the reference implementation's."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane import binaries
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.e2e.metrics_stage import MetricsStage, PlayedApplication, custom_metrics_adapter
from trimtab.metricsapi.api_request import API_SERVICE_NAME

# The aggregated API takes a control plane with an aggregation layer of its own.
pytestmark = pytest.mark.slow

NAME = "custom.metrics.k8s.io"
GROUP = f"/apis/{NAME}"
API = f"{GROUP}/v1beta2"
QUERY = "sum by (namespace, pod) (depth)"
HPA = ("system:serviceaccount:kube-system:horizontal-pod-autoscaler", "system:serviceaccounts", "system:authenticated")
TENANT = ("tenant", "system:authenticated")
DEPTHS = {"web-0": 0.3, "web-1": 1500.0, "web-2": 20000.0}


@pytest.fixture(scope="module")
def team(whole_cluster: Cluster) -> Iterator[Cluster]:
    inside = whole_cluster.in_namespace(f"metrics-{time.monotonic_ns() % 100000}")
    inside.pool("metrics", nodes=1)
    for name in DEPTHS:
        pod = {"hostNetwork": True, "containers": [{"name": "main", "image": inside.image}]}
        labels = {"app": "web", "number": name[-1]}
        meta = {"name": name, "labels": labels}
        inside.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod})
    inside.eventually(lambda: len(inside.running("app=web")) == len(DEPTHS), what="pods")
    yield inside
    inside.clean_up()


@pytest.fixture(scope="module")
def played(team: Cluster) -> Iterator[PlayedApplication]:
    played_application = PlayedApplication()
    played_application.vectors[QUERY] = [
        {"metric": {"namespace": team.namespace, "pod": name}, "value": [time.time(), str(value)]}
        for name, value in DEPTHS.items()
    ]
    yield played_application
    played_application.close()


@pytest.fixture(scope="module")
def stage(
    control_plane: ControlPlane, team: Cluster, played: PlayedApplication, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MetricsStage]:
    rules = {
        "rules": [
            {
                "name": "http_requests",
                "from": "scrape",
                "kind": "rate",
                "namespaces": [team.namespace],
                "pods": {"app": "web"},
                "series": "http_requests_total",
                "endpoint": {"port": played.port},
            },
            {"name": "queue_depth", "from": "query", "kind": "gauge", "namespaces": [team.namespace], "query": QUERY},
        ]
    }
    metrics_stage = MetricsStage(control_plane, team, tmp_path_factory.mktemp("metrics-api") / "home", rules)
    metrics_stage.start(PROMETHEUS_URL=f"http://127.0.0.1:{played.port}")
    team.eventually(metrics_stage.available, within=60, what="the APIService is available")
    yield metrics_stage
    metrics_stage.remove()


def path(team: Cluster, metric: str, pod: str = "*", selector: str = "") -> str:
    more = f"?labelSelector={selector}" if selector else ""
    return f"{API}/namespaces/{team.namespace}/pods/{pod}/{metric}{more}"


def values(document: dict[str, Any]) -> dict[str, str]:
    return {item["describedObject"]["name"]: item["value"] for item in document["items"]}


def test_the_api_server_serves_it_to_its_clients(stage: MetricsStage, team: Cluster) -> None:
    expected = {"web-0": "300m", "web-1": "1500", "web-2": "20k"}
    team.eventually(lambda: values(stage.raw(path(team, "queue_depth"))) == expected, what="values")
    assert values(stage.raw(path(team, "queue_depth", selector="number%3D1"))) == {"web-1": "1500"}
    assert values(stage.raw(path(team, "queue_depth", pod="web-2"))) == {"web-2": "20k"}


def test_a_rate_is_served_for_every_pod(stage: MetricsStage, team: Cluster, played: PlayedApplication) -> None:
    played.change(load=30, replicas=3)

    def near_ten() -> bool:
        items = stage.raw(path(team, "http_requests"))["items"]
        return len(items) == 3 and all(9_500 <= int(one["value"].removesuffix("m")) <= 10_500 for one in items)

    team.eventually(near_ten, within=20, what="10 requests per second")


def test_a_user_without_rights_is_refused_by_the_api_server_and_by_delegation(
    stage: MetricsStage, team: Cluster, control_plane: ControlPlane
) -> None:
    from tests.controlplane.api import Api

    tenant = Api(control_plane.kubeconfig_for("tenant"))
    assert stage.status_of(path(team, "queue_depth"), tenant) == 403
    # The API server itself would have stopped the tenant; this request passes it by.
    status, refusal = stage.ask(path(team, "queue_depth"), *TENANT)
    assert (status, refusal["reason"]) == (403, "Forbidden")
    assert stage.ask(path(team, "queue_depth"), *HPA)[0] == 200


def test_a_tenant_with_rights_in_one_namespace_has_them_there_only(stage: MetricsStage, team: Cluster) -> None:
    rule = {"apiGroups": ["custom.metrics.k8s.io"], "resources": ["pods/queue_depth"], "verbs": ["get"]}
    rbac = "rbac.authorization.k8s.io"
    team.create({"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": {"name": "reads"}, "rules": [rule]})
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "reads"},
        "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "reads"},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": "reader"}],
    }
    team.create(binding)
    team.eventually(lambda: stage.ask(path(team, "queue_depth"), "reader")[0] == 200, within=20, what="allowed")
    assert stage.ask(path(team, "http_requests"), "reader")[0] == 403
    assert stage.ask(f"{API}/namespaces/kube-system/pods/*/queue_depth", "reader")[0] == 403


def test_headers_count_only_with_the_aggregation_layers_certificate(stage: MetricsStage, team: Cluster) -> None:
    status, _ = stage.ask(path(team, "queue_depth"), "admin", "system:masters", verified=False)
    assert status == 401
    assert stage.ask(path(team, "queue_depth"), None)[0] == 401


def test_other_paths_are_not_there(stage: MetricsStage) -> None:
    for other in ("/apis", "/discovery/v2", "/openapi/v2", f"{API}/nodes/foo", f"{API}/namespaces/ns/pods/bar"):
        assert stage.ask(other, *HPA)[0] == 404, other


def test_discovery_and_values_equal_those_of_the_reference_implementation(
    stage: MetricsStage, team: Cluster, control_plane: ControlPlane, tmp_path: Path
) -> None:
    program = binaries.custom_metrics_adapter()
    with custom_metrics_adapter(program, control_plane, tmp_path / "adapter") as port:
        team.eventually(lambda: _serves(stage, port), within=60, what="the reference implementation")
        for name, value in DEPTHS.items():
            _write_metric(team.namespace, name, f"{int(value * 1000)}m")
        masters = ("admin", "system:masters")
        team.eventually(
            lambda: len(stage.ask(path(team, "queue_depth"), *masters, port=port)[1].get("items", ())) == len(DEPTHS),
            what="values of the reference implementation",
        )
        for request in (
            path(team, "queue_depth"),
            path(team, "queue_depth", selector="number%3D1"),
            path(team, "queue_depth", selector="app+in+(web),number!%3D2"),
            path(team, "queue_depth", pod="web-1"),
            path(team, "queue_depth", selector="app%3Dnone"),
            path(team, "queue_depth", pod="no-such-pod"),
            f"{API}/namespaces/{team.namespace}/pods/web-1",
        ):
            ours, theirs = stage.ask(request, *masters), stage.ask(request, *masters, port=port)
            assert _comparable(*ours) == _comparable(*theirs), request
        # The reference implementation knows no rules, so it cannot know that a name is wrong.
        assert stage.ask(path(team, "no_such_metric"), *masters)[0] == 404
        ours, theirs = stage.ask(API, *masters)[1], stage.ask(API, *masters, port=port)[1]
        # The reference implementation lists a placeholder instead of its metrics, whatever it serves.
        [placeholder] = theirs["resources"]
        assert {**ours, "resources": [placeholder]} == theirs
        assert [one["name"] for one in ours["resources"]] == ["pods/http_requests", "pods/queue_depth"]
        for one in ours["resources"]:
            assert {**one, "name": placeholder["name"], "namespaced": placeholder["namespaced"]} == placeholder
        group, their_group = stage.ask(GROUP, *masters)[1], stage.ask(GROUP, *masters, port=port)[1]
        # The reference implementation serves two versions and names the older one alone; we serve the newer one alone.
        older, newer = ({"groupVersion": f"{NAME}/{one}", "version": one} for one in ("v1beta1", "v1beta2"))
        assert (their_group["versions"], their_group["preferredVersion"]) == ([older], older)
        assert group == {**their_group, "versions": [newer], "preferredVersion": newer}


def test_clients_find_the_version_that_is_served_in_the_discovery_of_the_api_server(stage: MetricsStage) -> None:
    """The API server makes this from its APIServices, and an HPA takes the version that it prefers."""
    ours = stage.ask(GROUP, *HPA)[1]
    [group] = [one for one in stage.raw("/apis")["groups"] if one["name"] == NAME]
    assert stage.raw(GROUP) == ours
    assert {"kind": ours["kind"], "apiVersion": ours["apiVersion"], **group} == ours
    assert stage.raw(f"/apis/{ours['preferredVersion']['groupVersion']}") == stage.ask(API, *HPA)[1]


def test_kubectl_gets_the_same_discovery_from_the_reference_implementation_in_our_place(
    stage: MetricsStage, team: Cluster, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """It is registered as our APIService registers us, so that the API server publishes both in the same way."""
    ours = _discover(team)
    spec = team.get("APIService", API_SERVICE_NAME)["spec"]
    with custom_metrics_adapter(binaries.custom_metrics_adapter(), control_plane, tmp_path / "adapter") as port:
        team.eventually(lambda: _serves(stage, port), within=60, what="the reference implementation")
        theirs_spec = {"service": {**spec["service"], "port": port}, "caBundle": None, "insecureSkipTLSVerify": True}
        try:
            team.patch("APIService", API_SERVICE_NAME, {"spec": theirs_spec})
            team.eventually(lambda: "/custommetrics" in _discover(team)[API], within=60, what="the placeholder")
            theirs = _discover(team)
        finally:
            team.patch("APIService", API_SERVICE_NAME, {"spec": {**spec, "insecureSkipTLSVerify": None}})
    team.eventually(lambda: _discover(team) == ours, within=60, what="our discovery again")
    assert theirs[GROUP] == ours[GROUP]
    assert theirs["/apis"] == ours["/apis"]
    resources = json.loads(ours[API])["resources"]
    [placeholder] = json.loads(theirs[API])["resources"]
    assert json.loads(theirs[API]) == {**json.loads(ours[API]), "resources": [placeholder]}
    assert all({**one, "name": "/custommetrics", "namespaced": False} == placeholder for one in resources)


def _discover(team: Cluster) -> dict[str, str]:
    """What `kubectl get --raw` prints of the group, of its version, and of the group among all groups, by path."""
    groups = json.loads(team.kubectl("get", "--raw", "/apis"))["groups"]
    [name] = [one for one in groups if one["name"] == NAME]
    return {"/apis": json.dumps(name), **{at: team.kubectl("get", "--raw", at).strip() for at in (GROUP, API)}}


def _serves(stage: MetricsStage, port: int) -> bool:
    try:
        return stage.ask("/healthz", "admin", "system:masters", port=port)[0] == 200
    except (OSError, ValueError) as error:
        return isinstance(error, ValueError)


def _write_metric(namespace: str, pod: str, value: str) -> None:
    """Into the reference implementation, which takes values at this port, and at no other."""
    url = f"http://127.0.0.1:8080/write-metrics/namespaces/{namespace}/pods/{pod}/queue_depth"
    request = urllib.request.Request(url, json.dumps(value).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status < 300


def _comparable(status: int, document: dict[str, Any]) -> tuple[int, Any]:
    """Without what differs from moment to moment (times, windows), and the words of a refusal.

    The reference implementation writes the core group's version as "/v1", and no uid: its objects have "v1" and one.
    """
    if status >= 300:
        return status, (document["kind"], document["status"], document["reason"], document["code"])
    items = [
        {
            **{key: value for key, value in item.items() if key not in ("timestamp", "windowSeconds")},
            "describedObject": {
                **{key: value for key, value in item["describedObject"].items() if key != "uid"},
                "apiVersion": item["describedObject"]["apiVersion"].removeprefix("/"),
            },
        }
        for item in document["items"]
    ]
    items.sort(key=lambda item: item["describedObject"]["name"])
    return status, {**document, "items": items}


def test_the_stored_ca_bundle_is_the_only_field_that_the_account_may_change(stage: MetricsStage, team: Cluster) -> None:
    from tests.controlplane.api import Api, ApiError

    account = Api(stage._login())
    result = team.get("APIService", API_SERVICE_NAME)
    assert result["spec"]["caBundle"]
    records = {**result, "spec": {**result["spec"], "service": {"name": "mine", "namespace": "mine", "port": 443}}}
    with pytest.raises(ApiError, match="only the caBundle of an APIService"):
        account.request("PUT", f"/apis/apiregistration.k8s.io/v1/apiservices/{API_SERVICE_NAME}", records)
