"""Prometheus, and the metrics API, into the diary."""

from typing import Any

import pytest

from tests.usage.fake_prometheus import Answer, Asked, labels, matrix, serving, vector
from tests.usage.test_kubelet import AT, client, summary
from tests.usage.test_kubelet import Played as Nodes
from trimtab.histogram.batch_history import ContainerKey
from trimtab.histogram.live_history import LiveHistory
from trimtab.histogram.time_buckets import DAY
from trimtab.recommender.collector import SCRAPE_LAG_SECONDS, InstantCollector, RangeCollector
from trimtab.recommender.process import Headers, parse_names
from trimtab.recommender.settings import Settings
from trimtab.usage import metrics_api
from trimtab.usage.cluster_label import MixedClusters
from trimtab.usage.errors import GarbledSource, UnreachableSource, UsageFault
from trimtab.usage.http_client import HttpApi, RetryPolicy
from trimtab.usage.kubelet import Kubelets
from trimtab.usage.owners import OwnerIndex
from trimtab.usage.prometheus import Prometheus, QueryPlan

START = 20_000 * DAY
WEB = ContainerKey("shop", "Deployment", "web", "app")
API = ContainerKey("team", "Deployment", "api", "app")


class Played:
    """A Prometheus with two namespaces; of each moment it knows a tenth of a core."""

    def __init__(self) -> None:
        self.broken = ""
        """The namespace it cannot answer for."""
        self.hangs_up = False
        """Whether it closes the connection instead."""
        self.empty = False

    def __call__(self, request: Asked) -> Answer:
        path, query, _ = request
        if path.endswith("/labels"):
            return 200, labels("namespace", "pod", "container")
        if path.endswith("/namespace/values"):
            return 200, labels(*(() if self.empty else ("shop", "team")))
        namespace = "shop" if '"shop"' in str(query) else "team"
        if path.endswith("/pod/values"):
            return 200, labels("web-7d4b9c6f5d-x2x4k" if namespace == "shop" else "api-7d4b9c6f5d-x2x4k")
        if path.endswith("/query"):
            return 200, vector()
        if namespace == self.broken:
            if self.hangs_up:
                raise ConnectionAbortedError
            return 400, {"status": "error", "error": "broken"}
        pod = "web-7d4b9c6f5d-x2x4k" if namespace == "shop" else "api-7d4b9c6f5d-x2x4k"
        times = range(int(query["start"]), int(query["end"]) + 1, int(query["step"]))
        metric = {"namespace": namespace, "pod": pod, "container": "app"}
        return 200, matrix((metric, [(float(at), 0.1) for at in times]))


def histories(url: str) -> RangeCollector:
    return RangeCollector(Prometheus(HttpApi(url, retry_policy=RetryPolicy(tries=1)), QueryPlan(step_seconds=3600)))


def collect(source: Any, diary: LiveHistory, now: int) -> int:
    usage: int = source.collect_usage(diary, OwnerIndex(), now + SCRAPE_LAG_SECONDS, lambda: True)
    return usage


def test_the_whole_window_is_asked_for_first_and_then_what_is_new() -> None:
    diary = LiveHistory(days=2)
    with serving(Played()) as server:
        source = histories(server.url)
        assert collect(source, diary, START) > 0
        count = len(server.asked)
        assert collect(source, diary, START + 60) == 0  # before the next point nobody is asked
        assert len(server.asked) == count
        collect(source, diary, START + 3600)
    first = [int(query["start"]) for path, query, _ in server.asked[:count] if path.endswith("query_range")]
    later = [int(query["start"]) for path, query, _ in server.asked[count:] if path.endswith("query_range")]
    assert (min(first), set(later)) == (START - 2 * DAY, {START})
    assert diary.imported_until == {"shop": START + 3600, "team": START + 3600}
    assert (
        diary.get_window(WEB, "cpu").merge_days().total_count == diary.get_window(API, "cpu").merge_days().total_count
    )


def test_a_namespace_that_cannot_be_read_is_read_next_time_and_the_others_not_twice() -> None:
    diary, played = LiveHistory(days=2), Played()
    played.broken = "team"
    with serving(played) as server:
        source = histories(server.url)
        with pytest.raises(UsageFault):
            collect(source, diary, START)
        assert diary.list_containers() == [WEB]
        played.broken = ""
        collect(source, diary, START)
    assert diary.list_containers() == [WEB, API]
    assert diary.get_window(WEB, "cpu") == diary.get_window(API, "cpu")


@pytest.mark.parametrize("hangs_up", [False, True], ids=["refused", "no response"])
def test_a_namespace_that_can_never_be_read_holds_back_no_other(hangs_up: bool) -> None:
    """The namespaces are read in the order of their names: `shop` comes before `team`."""
    diary, played = LiveHistory(days=2), Played()
    played.broken, played.hangs_up = "shop", hangs_up
    with serving(played) as server:
        source = histories(server.url)
        for hours in range(3):
            with pytest.raises(UsageFault):
                collect(source, diary, START + 3600 * hours)
            assert diary.imported_until.get("team") == (START + 3600 * hours if hours or not hangs_up else None)
    assert "shop" not in diary.imported_until


def test_a_prometheus_that_lost_everything_is_asked_again_for_it() -> None:
    diary, played = LiveHistory(days=2), Played()
    with serving(played) as server:
        source = histories(server.url)
        collect(source, diary, START)
        played.empty = True
        with pytest.raises(GarbledSource, match="Prometheus has no series of containers"):
            collect(source, diary, START + 3600)
        assert diary.imported_until == {"shop": START, "team": START}
        played.empty = False
        collect(source, diary, START + 7200)
    assert diary.imported_until == {"shop": START + 7200, "team": START + 7200}


def test_after_a_loss_names_are_asked_from_the_beginning_and_history_of_what_is_missing() -> None:
    diary, played = LiveHistory(days=2), Played()
    with serving(played) as server:
        collect(histories(server.url), diary, START)
        diary.mark_incomplete(["team"])
        first = len(server.asked)
        collect(histories(server.url), diary, START + 3600)
        request = server.asked[first:]
    names = [query for path, query, _ in request if path.endswith("/namespace/values")]
    assert [query["start"] for query in names] == [str(START + 3600 + SCRAPE_LAG_SECONDS - 2 * DAY)]
    begun = {
        "team" if '"team"' in query["query"] else "shop": int(query["start"])
        for path, query, _ in request
        if path.endswith("query_range") and "cpu" in query["query"]
    }
    assert begun["shop"] == START
    assert begun["team"] <= START - DAY
    assert (diary.is_complete, diary.imported_until) == (True, {"shop": START + 3600, "team": START + 3600})


def test_who_leads_no_more_reads_no_further() -> None:
    diary = LiveHistory(days=2)
    with serving(Played()) as server:
        assert histories(server.url).collect_usage(diary, OwnerIndex(), START, lambda: False) == 0
    assert diary.list_containers() == []


def test_a_moment_from_the_future_is_left_out() -> None:
    usage = [{"name": "app", "usage": {"cpu": "100m", "memory": "64Mi"}}]
    moments = (("web", "2024-10-04T00:00:00Z"), ("api", "2034-01-01T00:00:00Z"))
    items = [
        {"metadata": {"name": f"{name}-7d4b9c6f5d-x2x4k", "namespace": "shop"}, "timestamp": at, "containers": usage}
        for name, at in moments
    ]
    diary = LiveHistory()
    with serving(lambda request: (200, {"items": items})) as server:
        api = client(server.url)
        assert collect(InstantCollector(lambda: [metrics_api.read_metrics(api)]), diary, START) == 2
    assert diary.list_containers() == [WEB]


def test_kubelets_are_a_source_of_moments() -> None:
    diary, names = LiveHistory(), ("web-7d4b9c6f5d-x2x4k", "api-7d4b9c6f5d-x2x4k")
    with serving(Nodes(a=summary(names[0]), b=summary(names[1]))) as server:
        look = Kubelets(client(server.url)).read_usage
        kubelets = InstantCollector(lambda: [look()])
        assert collect(kubelets, diary, AT) == 4
    assert {(c.kind, c.workload) for c in diary.list_containers()} == {("Deployment", "web"), ("Deployment", "api")}


def test_a_token_is_read_each_time_and_said_to_be_missing(tmp_path: Any) -> None:
    headers = Headers(Settings(prometheus_token_file=tmp_path / "token", prometheus_tenant="a"))
    for token in ("one", "two"):
        (tmp_path / "token").write_text(token + "\n")
        assert {**headers} == {"X-Scope-OrgID": "a", "Authorization": f"Bearer {token}"}
    (tmp_path / "token").unlink()
    with pytest.raises(UnreachableSource, match="token of Prometheus"):
        dict(headers)
    assert dict(Headers(Settings())) == {}


def test_two_clusters_without_a_matcher_are_not_read() -> None:
    played = Played()

    def answer(request: Asked) -> Answer:
        path = request[0]
        if path.endswith("/labels"):
            return 200, labels("namespace", "cluster")
        if path.endswith("/cluster/values"):
            return 200, labels("prod", "stage")
        if 'cluster=""' in str(request[1]):
            return 200, labels()
        return played(request)

    diary = LiveHistory()
    with serving(answer) as server:
        with pytest.raises(MixedClusters, match=r'"prod", "stage".*TRIMTAB_RECOMMENDER_PROMETHEUS_MATCHER'):
            collect(histories(server.url), diary, START + DAY)
        assert not diary.windows
        chosen = Prometheus(HttpApi(server.url), QueryPlan(step_seconds=3600, extra_matcher='cluster="prod"'))
        assert collect(RangeCollector(chosen), diary, START + DAY)


def test_headers_come_from_a_file_that_is_read_each_time(tmp_path: Any) -> None:
    lines = tmp_path / "headers"
    lines.write_text("# why\nAuthorization: Basic first\nX-Team: shop\n")
    headers = Headers(Settings(prometheus_header_file=lines, prometheus_token="other"))
    assert dict(headers) == {"Authorization": "Basic first", "X-Team": "shop"}
    lines.write_text("")
    assert dict(headers) == {"Authorization": "Bearer other"}
    assert "other" not in repr(Settings(prometheus_token="other"))


@pytest.mark.parametrize(
    ("setting", "word"),
    [
        ({"prometheus_matcher": "cluster"}, "TRIMTAB_RECOMMENDER_PROMETHEUS_MATCHER"),
        ({"prometheus_label_names": "pod"}, "TRIMTAB_RECOMMENDER_PROMETHEUS_LABEL_NAMES"),
        ({"cpu_metric": "a b"}, "TRIMTAB_RECOMMENDER_CPU_METRIC"),
    ],
)
def test_settings_that_make_no_sense_are_named_before_anything_begins(setting: dict[str, str], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        parse_names(Settings(**setting))  # type: ignore[arg-type]
