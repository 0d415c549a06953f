"""Usage from Prometheus: what is asked, what is read, what goes wrong."""

import json
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import owner_key
from tests.usage.fake_prometheus import Answer, Asked, labels, matrix, serving, vector
from trimtab.usage.errors import GarbledSource, IncompleteSource, RefusedSource, UnreachableSource
from trimtab.usage.http_client import HttpApi, RetryPolicy
from trimtab.usage.prometheus import Prometheus, QueryPlan, split_span
from trimtab.usage.prometheus_response import parse_series
from trimtab.usage.server_warnings import DistinctWarnings

DAY = 86400
END = 20_000 * DAY
START = END - 14 * DAY
APP = {"namespace": "shop", "pod": "web-7d4b9c6f5d-x2x4k", "container": "app"}


def shop(asked: Asked) -> Answer:
    """One namespace, three pods, a value for each query."""
    path, query, _ = asked
    if path.endswith("/label/namespace/values"):
        return 200, labels("shop")
    if path.endswith("/label/pod/values"):
        return 200, labels("web-a", "web-b", "web-c")
    value = 0.25 if "cpu" in query["query"] else 1e8
    return 200, matrix((APP, [(float(query["start"]), value)]))


def at(url: str, plan: QueryPlan | None = None) -> Prometheus:
    return Prometheus(HttpApi(url, wait=lambda seconds: None), plan or QueryPlan())


# ── what is asked ────────────────────────────────────────────────────────
def test_everything_is_asked_in_pieces_of_pods_and_days() -> None:
    with serving(shop) as server:
        it = at(server.url, QueryPlan(pods_per_query=2, days_per_query=7))
        pieces = it.plan_queries(START, END - 1)
        done: list[tuple[int, int]] = []
        objects = list(it.read_series(pieces, lambda n, all_: done.append((n, all_))))
    assert len(pieces) == len(objects) == 2 * 2 * 2  # groups of pods, weeks, resources
    assert {piece.pods for piece in pieces} == {("web-a", "web-b"), ("web-c",)}
    assert done[-1] == (8, 8)
    assert {(s.resource, s.values[0]) for s in objects} == {("cpu", 0.25), ("memory", 1e8)}


def test_queries_take_the_greater_of_two_scrapers_and_leave_the_pause_container_out() -> None:
    with serving(shop) as server:
        it = at(server.url, QueryPlan(extra_matcher='cluster="prod"'))
        list(it.read_series(it.plan_queries(START, END, ["shop"])))
    queries = [query["query"] for path, query, _ in server.asked if path.endswith("query_range")]
    assert all(query.startswith("max by (namespace, pod, container)") for query in queries)
    assert all('container!="POD"' in query and 'cluster="prod"' in query for query in queries)
    assert any("[300s]" in query for query in queries)  # no peak of memory falls between two points


def test_series_that_name_the_program_which_reports_them_are_left_out_and_said() -> None:
    def exporter(asked: Asked) -> Answer:
        return (200, labels("pod", "exported_pod")) if asked[0].endswith("/labels") else shop(asked)

    with serving(exporter) as server:
        it = at(server.url)
        list(it.read_series(it.plan_queries(START, END)))
        found = it.find_excluded_labels(START, END)
    sent = [query.get("query", query.get("match[]", "")) for path, query, _ in server.asked if "/labels" not in path]
    assert all('exported_pod=""' in query for query in sent)
    assert found == ("exported_pod",)


def test_the_owners_of_pods_are_those_of_the_pods_that_kube_state_metrics_describes() -> None:
    metric = {
        "namespace": "monitoring",
        "exported_namespace": "shop",
        "pod": "ksm",
        "exported_pod": "web-0",
        "owner_kind": "StatefulSet",
        "owner_name": "web",
    }

    def owners(asked: Asked) -> Answer:
        return 200, vector(metric) if "kube_pod_owner" in asked[1]["query"] else vector()

    with serving(owners) as server:
        found = at(server.url).read_owners(START, END)
    assert found == {("shop", "web-0"): owner_key("StatefulSet/web", namespace="shop")}


@given(st.integers(1, 40 * DAY), st.integers(1, 14), st.sampled_from([15, 60, 300, 3600]))
def test_spans_cover_the_time_on_one_grid_and_no_point_twice(length: int, days: int, step: int) -> None:
    span = split_span(START, START + length, days * DAY, step)
    end = START + length
    assert (span[0][0], span[-1][1] >= end - end % step, span[-1][1] <= end) == (START, True, True)
    assert all(begin % step == 0 and (end - begin) // step < 11_000 * days for begin, end in span)
    assert all(later[0] - (earlier[1] - earlier[1] % step) == step for earlier, later in pairwise(span))


def test_headers_log_in_and_name_the_tenant() -> None:
    with serving(shop) as server:
        it = Prometheus(HttpApi(server.url, {"Authorization": "Bearer secret", "X-Scope-OrgID": "shop"}))
        assert it.list_namespaces(START, END) == ["shop"]
    headers = server.asked[0][2]
    assert (headers["Authorization"], headers["X-Scope-OrgID"]) == ("Bearer secret", "shop")


def test_owners_are_followed_from_pod_to_deployment() -> None:
    text = {
        "kube_pod_owner": {"namespace": "shop", "pod": "web-1-a", "owner_kind": "ReplicaSet", "owner_name": "web-1"},
        "kube_replicaset_owner": {
            "namespace": "shop",
            "replicaset": "web-1",
            "owner_kind": "Deployment",
            "owner_name": "web",
        },
    }

    def answer(request: Asked) -> Answer:
        return 200, vector(*(metric for name, metric in text.items() if name in request[1]["query"]))

    with serving(answer) as server:
        assert at(server.url).read_owners(START, END) == {
            ("shop", "web-1-a"): owner_key("Deployment/web", namespace="shop")
        }


# ── what goes wrong ──────────────────────────────────────────────────────
def test_a_piece_that_is_too_large_is_asked_in_halves() -> None:
    def answer(request: Asked) -> Answer:
        if "query_range" in request[0] and request[1]["query"].count("web-") > 1:
            return 422, {"status": "error", "error": "query processing would load too many samples into memory"}
        return shop(request)

    with serving(answer) as server:
        it = at(server.url, QueryPlan(days_per_query=14))
        objects = list(it.read_series(it.plan_queries(START, END - 1)))
    assert len(objects) == 3 * 2  # each pod alone


def test_a_pod_that_is_too_large_alone_is_asked_for_fewer_days() -> None:
    def answer(request: Asked) -> Answer:
        if "query_range" in request[0] and int(request[1]["end"]) - int(request[1]["start"]) > 4 * DAY:
            return 422, {"status": "error", "error": "exceeded maximum resolution of 11,000 points"}
        return shop(request)

    with serving(answer) as server:
        it = at(server.url, QueryPlan(days_per_query=7, pods_per_query=1))
        assert list(it.read_series(it.plan_queries(START, END - 1)[:1]))


@pytest.mark.parametrize("header", ["Authorization", "authorization", "Cookie"])
def test_a_source_that_repeats_what_logged_in_is_told_without_it(header: str) -> None:
    def repeats(request: Asked) -> Answer:
        return 403, b"no: Bearer hunter2-hunter2, pass-word, tenant 1"

    with serving(repeats) as server:
        url = server.url.replace("://", "://me:pass-word@")
        source = HttpApi(url, {header: "Bearer hunter2-hunter2", "X-Scope-OrgID": "1"}, wait=lambda seconds: None)
        with pytest.raises(RefusedSource) as refused:
            source.get("/api/v1/query", {"query": "up"}, "ask")
    assert "hunter2" not in str(refused.value)
    assert "pass-word" not in str(refused.value)
    assert "***, ***, tenant 1" in str(refused.value)
    assert server.url in str(refused.value)


def test_a_busy_server_is_asked_again_and_a_wrong_query_is_not() -> None:
    waits: list[float] = []
    answers = iter([(503, b"busy"), (429, b""), (200, labels("shop"))])
    with serving(lambda request: next(answers)) as server:
        it = Prometheus(HttpApi(server.url, wait=waits.append))
        assert it.list_namespaces(START, END) == ["shop"]
    assert waits == [1.0, 2.0]
    with serving(lambda request: (400, {"error": "parse error"})) as server:
        with pytest.raises(RefusedSource, match="parse error"):
            at(server.url).list_namespaces(START, END)
        assert len(server.asked) == 1


def test_an_address_where_nobody_is_is_told_at_once() -> None:
    waits: list[float] = []
    it = HttpApi("http://127.0.0.1:9", wait=waits.append)
    with pytest.raises(UnreachableSource, match=r"names: http://127.0.0.1:9: Failed to establish a new connection"):
        it.get("/api", {}, "names")
    assert waits == []


def test_a_server_that_answered_before_is_waited_for() -> None:
    waits: list[float] = []
    with serving(shop) as server:
        it = HttpApi(server.url, wait=waits.append, retry_policy=RetryPolicy(tries=3))
        assert Prometheus(it).list_namespaces(START, END)
    with pytest.raises(UnreachableSource):
        it.get("/api/v1/query", {}, "names")
    assert len(waits) == 2


def test_https_to_a_server_without_is_told_as_that() -> None:
    with serving(shop) as server, pytest.raises(UnreachableSource, match=r"the server does not use TLS: try http://"):
        HttpApi(server.url.replace("http:", "https:")).get("/api/v1/query", {}, "names")


def test_a_server_is_not_hurried() -> None:
    waits: list[float] = []
    with serving(shop) as server:
        it = Prometheus(HttpApi(server.url, wait=waits.append, retry_policy=RetryPolicy(pause=30.0)))
        it.list_namespaces(START, END)
        it.list_namespaces(START, END)
    assert len(waits) == 1
    assert 29 < waits[0] <= 30


@pytest.mark.parametrize("body", [b"<html>", b'{"data": {"result": [{"metric": 3}]}}', b'{"status": "error"}'])
def test_an_answer_that_makes_no_sense_is_told(body: bytes) -> None:
    with pytest.raises(GarbledSource):
        list(parse_series(body, "cpu"))


# ── what is read ─────────────────────────────────────────────────────────
def test_points_that_are_no_amounts_and_of_the_future_count_for_nothing() -> None:
    from trimtab.histogram.batch_history import BatchHistory as Book
    from trimtab.usage.owners import OwnerIndex as Owners
    from trimtab.usage.series import add_all_series

    body = json.dumps(matrix((APP, [(END, 1.0), (END + 60, float("nan")), (END + 9999, 7.0)]))).encode()
    book = Book()
    add_all_series(book, parse_series(body, "cpu", now=END + 60), Owners())
    whole = book.compressed_window(book.list_containers()[0], "cpu").merge_days()
    assert (whole.total_count, whole.top) == (1, 1.0)


def test_an_empty_answer_is_no_series() -> None:
    assert list(parse_series(json.dumps(matrix()).encode(), "cpu")) == []


# ── what an answer says about itself ─────────────────────────────────────
def with_notices(**notices: object) -> Callable[[Asked], Answer]:
    def answer(asked: Asked) -> Answer:
        status, body = shop(asked)
        return status, {**body, **notices}

    return answer


def test_each_warning_of_the_server_is_reported_once() -> None:
    warnings: list[str] = []
    with serving(with_notices(warnings=["store thanos-2 did not respond"], isPartial=False)) as server:
        it = Prometheus(HttpApi(server.url), QueryPlan(), DistinctWarnings(warnings.append))
        assert list(it.read_series(it.plan_queries(START, END - 1)))
    assert warnings == ["store thanos-2 did not respond"]


def test_a_partial_answer_is_no_answer() -> None:
    with serving(with_notices(isPartial=True)) as server, pytest.raises(IncompleteSource, match="answer is partial"):
        at(server.url).list_namespaces(START, END)
