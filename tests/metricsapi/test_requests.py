"""Who asks and for what: paths, headers, reviews, and the documents of the answer."""

import json
from dataclasses import replace

import pytest

from trimtab.cluster.reason import Unreadable
from trimtab.metricsapi import authorization
from trimtab.metricsapi.api_request import DiscoveryRequest, InvalidRequest, MetricRequest, read_request
from trimtab.metricsapi.authorization import AccessAnswer, Authorizer, build_access_review
from trimtab.metricsapi.documents import PodMetric, render_group, render_resources, render_values
from trimtab.metricsapi.request_header import RemoteUser, RequestHeaderConfig, authenticate_user, read_config

API = b"/apis/custom.metrics.k8s.io/v1beta2"
CONFIG = RequestHeaderConfig(client_ca="-----BEGIN CERTIFICATE-----", allowed_names=("front-proxy",))


def asked(path: bytes, query: bytes = b"", method: str = "GET") -> object:
    return read_request(method, path, query)


def test_all_pods_and_one_pod_are_asked_for_by_path() -> None:
    every = MetricRequest(namespace="ns", name="*", metric="m")
    assert asked(API + b"/namespaces/ns/pods/*/m") == every
    assert asked(API + b"/namespaces/ns/pods/%2A/m") == every
    assert asked(API + b"/namespaces/ns/pods/web-0/a%3Ab") == MetricRequest(namespace="ns", name="web-0", metric="a:b")


def test_a_selector_is_read_as_kubectl_does() -> None:
    answer = asked(API + b"/namespaces/ns/pods/*/m", b"labelSelector=app%3Dweb%2Ctier+in+(a%2Cb)")
    assert isinstance(answer, MetricRequest)
    assert [(one.key, one.operator, one.values) for one in answer.requirements] == [
        ("app", "In", ("web",)),
        ("tier", "In", ("a", "b")),
    ]


def test_discovery_is_two_documents() -> None:
    assert asked(b"/apis/custom.metrics.k8s.io") == DiscoveryRequest("/apis/custom.metrics.k8s.io", is_version=False)
    assert asked(API + b"/") == DiscoveryRequest(API.decode(), is_version=True)


@pytest.mark.parametrize(
    ("path", "query", "method", "status"),
    [
        (b"/", b"", "GET", 404),
        (b"/apis", b"", "GET", 404),
        (b"/discovery/v2", b"", "GET", 404),
        (b"/apis/custom.metrics.k8s.io/v1beta1", b"", "GET", 404),
        (API + b"/nodes/foo", b"", "GET", 404),
        (API + b"/nodes/*/m", b"", "GET", 404),
        (API + b"/namespaces/ns/pods/bar", b"", "GET", 404),
        (API + b"/namespaces/ns/pods//m", b"", "GET", 404),
        (API + b"/namespaces/ns/metrics/m", b"", "GET", 404),
        (API + b"/namespaces/ns/pods/*/m", b"", "POST", 405),
        (API + b"/namespaces/ns/pods/*/m", b"labelSelector=a%3D%3D%3Db", "GET", 400),
        (API + b"/namespaces/ns/pods/*/m", b"metricLabelSelector=a%3Db", "GET", 400),
        (API + b"/namespaces/ns/pods/*/%ff", b"", "GET", 400),
        (API + b"/namespaces/ns/pods/*/m", b"&".join(b"x=1" for _ in range(50)), "GET", 400),
        (API + b"/" + b"x" * 5000, b"", "GET", 414),
    ],
)
def test_every_other_path_is_refused(path: bytes, query: bytes, method: str, status: int) -> None:
    answer = asked(path, query, method)
    assert isinstance(answer, InvalidRequest)
    assert answer.status == status


HEADERS = [(b"X-Remote-User", b"eve"), (b"x-remote-group", b"a"), (b"x-remote-group", b"b")]


def test_headers_name_the_user_if_the_certificate_vouches_for_them() -> None:
    expected = RemoteUser("eve", ("a", "b", "system:authenticated"))
    assert authenticate_user(CONFIG, ("front-proxy",), HEADERS) == expected


@pytest.mark.parametrize(
    ("user", "groups", "expected"),
    [
        # An API server reads discovery as this user, and names no group: without one it would be refused, and HPAs
        # would see a group without versions.
        (b"system:kube-aggregator", [], ("system:authenticated",)),
        (b"eve", [b"system:authenticated", b"a"], ("system:authenticated", "a")),
        (b"system:anonymous", [b"system:unauthenticated"], ("system:unauthenticated",)),
        (b"system:anonymous", [], ()),
    ],
)
def test_every_user_but_nobody_is_authenticated_as_in_kubernetes_own_servers(
    user: bytes, groups: list[bytes], expected: tuple[str, ...]
) -> None:
    headers = [(b"x-remote-user", user), *((b"x-remote-group", group) for group in groups)]
    remote_user = authenticate_user(CONFIG, ("front-proxy",), headers)
    assert remote_user is not None
    assert remote_user.groups == expected


@pytest.mark.parametrize("names", [None, (), ("other",)])
def test_headers_without_an_allowed_certificate_name_no_user(names: tuple[str, ...] | None) -> None:
    assert authenticate_user(CONFIG, names, HEADERS) is None


def test_without_allowed_names_every_certificate_of_the_authority_counts() -> None:
    assert authenticate_user(replace(CONFIG, allowed_names=()), ("x",), HEADERS) is not None
    assert authenticate_user(replace(CONFIG, allowed_names=()), None, HEADERS) is None


def test_a_certificate_without_a_user_is_no_user() -> None:
    assert authenticate_user(CONFIG, ("front-proxy",), [(b"x-remote-user", b"")]) is None


def test_too_many_groups_are_nobody_rather_than_some() -> None:
    many = [(b"x-remote-user", b"eve"), *((b"x-remote-group", b"g%d" % n) for n in range(1001))]
    assert authenticate_user(CONFIG, ("front-proxy",), many) is None


def test_extras_are_unescaped() -> None:
    remote_user = authenticate_user(CONFIG, ("front-proxy",), [*HEADERS, (b"X-Remote-Extra-a%2Fb", b"c")])
    assert remote_user is not None
    assert remote_user.extra == (("a/b", ("c",)),)


def test_the_configuration_is_that_of_the_cluster() -> None:
    data = {
        "requestheader-client-ca-file": "-----BEGIN CERTIFICATE-----",
        "requestheader-allowed-names": '["front-proxy"]',
        "requestheader-username-headers": '["X-User"]',
    }
    request_header_config = read_config(data)
    assert isinstance(request_header_config, RequestHeaderConfig)
    assert (request_header_config.allowed_names, request_header_config.username_headers) == (
        ("front-proxy",),
        ("x-user",),
    )
    assert isinstance(read_config({}), Unreadable)
    assert isinstance(read_config({**data, "requestheader-allowed-names": "["}), Unreadable)


def test_a_metric_is_reviewed_as_a_subresource_of_the_pod() -> None:
    request = MetricRequest(namespace="ns", name="*", metric="m")
    spec = build_access_review(RemoteUser("eve", ("a",)), request)["spec"]
    assert (spec["user"], spec["groups"]) == ("eve", ["a"])
    assert spec["resourceAttributes"] == {
        "namespace": "ns",
        "verb": "get",
        "group": "custom.metrics.k8s.io",
        "version": "v1beta2",
        "resource": "pods",
        "subresource": "m",
        "name": "*",
    }
    path = build_access_review(RemoteUser("eve"), DiscoveryRequest("/apis/x", is_version=True))["spec"]
    assert path["nonResourceAttributes"] == {"path": "/apis/x", "verb": "get"}


def test_an_answer_is_remembered_for_seconds_and_for_this_user_alone() -> None:
    reviews, now = [], [0.0]

    def ask(review: dict[str, object]) -> AccessAnswer:
        reviews.append(review)
        return AccessAnswer(True)

    authorizer = Authorizer(ask, lambda: now[0])
    request = MetricRequest(namespace="ns", name="*", metric="m")
    for user in ("eve", "eve", "adam"):
        assert authorizer.authorize(RemoteUser(user), request).is_allowed
    assert len(reviews) == 2
    now[0] = 11.0
    authorizer.authorize(RemoteUser("eve"), request)
    assert len(reviews) == 3


def test_accounts_of_a_namespace_drop_no_answer_that_another_user_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorization, "MAX_REMEMBERED", 8)
    authorizer = Authorizer(lambda _: AccessAnswer(True), lambda: 0.0)
    request = MetricRequest(namespace="ns", name="*", metric="m")
    users = [RemoteUser("hpa"), *(RemoteUser(f"system:serviceaccount:tenant:bot-{n}") for n in range(100))]
    for user in users:
        authorizer.authorize(user, request)
    assert authorizer.remembered_answer(users[0], request) is not None


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (RemoteUser("system:serviceaccount:a:x"), RemoteUser("system:serviceaccount:a:y"), True),
        (RemoteUser("system:serviceaccount:a:x"), RemoteUser("system:serviceaccount:b:x"), False),
        (RemoteUser("system:serviceaccount:a:x"), RemoteUser("a"), False),
        (RemoteUser("system:serviceaccount:a:x"), RemoteUser("namespace a"), False),
        (RemoteUser("eve"), RemoteUser("eve", ("team",), "1"), True),
        (RemoteUser("eve"), RemoteUser("adam"), False),
        (RemoteUser("system:anonymous"), RemoteUser("made-up", ("system:unauthenticated",)), True),
        (RemoteUser("system:anonymous"), RemoteUser("unauthenticated"), False),
    ],
)
def test_who_shares_as_one(one: RemoteUser, other: RemoteUser, is_same: bool) -> None:
    assert (one.sharer == other.sharer) is is_same


def test_values_are_written_as_kubernetes_writes_them() -> None:
    value = PodMetric(namespace="ns", name="p", uid="u", metric="m", milli=166, timestamp=1767229260, window_seconds=60)
    item = json.loads(render_values([value]))["items"][0]
    assert item == {
        "describedObject": {"kind": "Pod", "namespace": "ns", "name": "p", "uid": "u", "apiVersion": "v1"},
        "metric": {"name": "m", "selector": None},
        "timestamp": "2026-01-01T01:01:00Z",
        "windowSeconds": 60,
        "value": "166m",
    }
    gauges = [replace(value, milli=milli, window_seconds=None) for milli in (1_500_000, 20_000_000, 0, -500)]
    items = json.loads(render_values(gauges))["items"]
    assert [one["value"] for one in items] == ["1500", "20k", "0", "-500m"]
    assert "windowSeconds" not in items[0]


def test_an_empty_list_is_a_list() -> None:
    assert json.loads(render_values([]))["items"] == []


def test_discovery_lists_one_resource_for_each_metric() -> None:
    assert [one["name"] for one in json.loads(render_resources(["b", "a"]))["resources"]] == ["pods/a", "pods/b"]
    assert json.loads(render_group())["preferredVersion"]["version"] == "v1beta2"
