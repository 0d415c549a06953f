"""Usage of several clusters is never one history."""

import json
from pathlib import Path

import pytest

from tests.cli.recommending import START, WEB, prometheus, usage, web
from tests.cli.snapshots import snapshot, told, trimtab
from tests.usage.fake_prometheus import Answer, Asked, labels, matrix, serving

ASKED = ("--now", "2026-01-19T00:00:00Z", "--step", "3600")


def two_clusters(asked: Asked) -> Answer:
    """`prod` uses a quarter of a core, `stage` five times as much; both call the pod the same."""
    path, query, _ = asked
    if path.endswith("/labels"):
        return 200, labels("namespace", "pod", "container", "cluster", "prometheus")
    if path.endswith("/label/cluster/values"):
        return 200, labels("prod", "stage")
    if path.endswith("/label/prometheus/values"):
        return 200, labels("monitoring/k8s")
    if path.endswith("/label/namespace/values") and ('cluster=""' in str(query) or 'prometheus=""' in str(query)):
        return 200, labels()
    if "/label/" in path and not path.endswith(("/namespace/values", "/pod/values")):
        return 200, labels()
    actual_prometheus = prometheus(asked)
    if path.endswith("query_range") and 'cluster="stage"' in query["query"]:
        for series in actual_prometheus[1]["data"]["result"]:
            series["values"] = [[at, str(5 * float(value))] for at, value in series["values"]]
    return actual_prometheus


def saved(folder: Path) -> Path:
    """An answer of a Thanos: both clusters' series with their external labels."""
    times = [float(START + n * 600) for n in range(300)]
    rows = [
        (
            {
                "namespace": "shop",
                "pod": WEB,
                "container": "app",
                "cluster": cluster,
                "__tenant_id__": "t",
                "__name__": "container_cpu_usage",
            },
            [(at, cores) for at in times],
        )
        for cluster, cores in (("prod-eu", 1.0), ("dev-us", 0.05))
    ]
    path = folder / "answer.json"
    path.write_text(json.dumps(matrix(*rows)))
    return path


def csv(folder: Path, *clusters: str) -> Path:
    rows = [
        f"{START + n * 600},shop,{WEB},app,{0.05 if cluster == 'dev-us' else 1},{cluster}"
        for n in range(300)
        for cluster in clusters
    ]
    path = folder / "usage.csv"
    path.write_text("timestamp,namespace,pod,container,cpu,cluster\n" + "\n".join(rows) + "\n")
    return path


def test_two_clusters_in_one_prometheus_are_refused_with_their_names() -> None:
    with serving(two_clusters) as server:
        result = trimtab("recommend", "--prometheus", server.url, *ASKED)
        actual = [path for path, _, _ in server.asked if path.endswith("query_range")]
    assert (result.exit_code, actual) == (2, [])
    for word in ('cluster: "prod", "stage"', "--matcher 'cluster=\"prod\"'", "--by cluster"):
        assert word in " ".join(result.output.split())


def test_a_matcher_chooses_one_and_by_reports_each() -> None:
    with serving(two_clusters) as server:
        (one,) = told("recommend", "--prometheus", server.url, *ASKED, "--matcher", 'cluster="stage"')["containers"]
        each = told("recommend", "--prometheus", server.url, *ASKED, "--by", "cluster")
    assert (one["cpu"]["p95"], one["cluster"]) == ("1250m", None)
    assert each["by"] == "cluster"
    assert {(row["cluster"], row["cpu"]["p95"]) for row in each["containers"]} == {("prod", "250m"), ("stage", "1250m")}


def test_series_without_the_label_beside_others_are_another_cluster() -> None:
    def answer(request: Asked) -> Answer:
        if request[0].endswith("/label/cluster/values"):
            return 200, labels("prod")
        if request[0].endswith("/label/namespace/values") and 'cluster=""' in str(request[1]):
            return 200, labels("shop")
        return two_clusters(request)

    with serving(answer) as server:
        result = trimtab("recommend", "--prometheus", server.url, *ASKED)
    assert (result.exit_code, "series without the label" in " ".join(result.output.split())) == (2, True)


def test_a_server_that_tells_no_names_of_labels_is_asked_for_each() -> None:
    def answer(request: Asked) -> Answer:
        return (404, b"not here") if request[0].endswith("/labels") else two_clusters(request)

    with serving(answer) as server:
        assert trimtab("recommend", "--prometheus", server.url, *ASKED).exit_code == 2


@pytest.mark.parametrize("write", [saved, lambda folder: csv(folder, "prod-eu", "dev-us")])
def test_two_clusters_in_files_are_refused_with_their_names(tmp_path: Path, write) -> None:  # type: ignore[no-untyped-def]
    path = write(tmp_path)
    result = trimtab("recommend", "--usage", path)
    assert result.exit_code == 2
    assert 'cluster: "dev-us", "prod-eu"' in " ".join(result.output.split())
    (one,) = told("recommend", "--usage", path, "--matcher", "cluster=~'dev-.*'")["containers"]
    assert one["cpu"]["p95"] == "50m"
    each = told("recommend", "--usage", path, "--by", "cluster")["containers"]
    assert {(row["cluster"], row["cpu"]["p95"]) for row in each} == {("dev-us", "50m"), ("prod-eu", "1")}


def test_one_cluster_in_a_file_needs_no_matcher(tmp_path: Path) -> None:
    (one,) = told("recommend", "--usage", csv(tmp_path, "prod-eu"))["containers"]
    assert one["cpu"]["p95"] == "1"


def test_a_file_with_the_label_beside_one_without_is_refused(tmp_path: Path) -> None:
    result = trimtab("recommend", "--usage", csv(tmp_path, "prod-eu"), "--usage", usage(tmp_path))
    assert (result.exit_code, "series without the label" in " ".join(result.output.split())) == (2, True)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--by", "team"), "a label that distinguishes clusters"),
        (("--matcher", "cluster"), "conditions such as"),
        (("--matcher", 'a=~"("'), "a regular expression"),
        (("--by", "cluster", "--number"), "one cluster"),
        (("--label-name", "pod"), "pod=k8s_pod_name"),
        (("--cpu-metric", "a b"), "the name of a metric"),
    ],
)
def test_what_is_asked_wrongly_is_named(tmp_path: Path, options: tuple[str, ...], word: str) -> None:
    result = trimtab("recommend", "--usage", csv(tmp_path, "prod-eu"), *options)
    assert (result.exit_code, word in " ".join(result.output.split())) == (2, True), result.output


def test_a_snapshot_is_one_cluster(tmp_path: Path) -> None:
    result = trimtab(
        "recommend", "--usage", csv(tmp_path, "a", "b"), "--by", "cluster", "--cluster", snapshot(tmp_path, web())
    )
    assert (result.exit_code, "--cluster" in result.output) == (2, True)
