"""Which container a series describes, whatever labels name it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.usage.repeated_series import RepeatedSeries
from trimtab.usage.series import Series
from trimtab.usage.series_subject import CADVISOR_LABELS, EXPORTED_LABELS, NAMES, Subject, subject_of
from trimtab.usage.usage_file import UsageFile

START = 20_000 * 86400
TIMES = range(START, START + 40 * 60, 60)
EXPORTER = dict(zip(NAMES, ("monitoring", "cadvisor-x", "cadvisor"), strict=True))
WEB = ("shop", "web-0", "app")
EXPORTED = {**EXPORTER, **dict(zip(EXPORTED_LABELS, WEB, strict=True))}
CADVISOR = {**EXPORTER, **dict(zip(CADVISOR_LABELS, WEB, strict=True))}
MEMORY = "container_memory_working_set_bytes"
FORMS = ("matrix", "vector", "list", "lines", "VictoriaMetrics", "CSV")
labels_of_web = st.sampled_from((EXPORTED, CADVISOR, {**EXPORTED, **CADVISOR}))


def written(form: str, *all_labels: dict[str, str]) -> bytes:
    """Series of memory with these labels, all at the same times."""
    metrics = [{"__name__": MEMORY, **labels} for labels in all_labels]
    matrix = [{"metric": one, "values": [[at, "1e8"] for at in TIMES]} for one in metrics]
    if form == "matrix":
        return answer("matrix", matrix)
    if form == "vector":
        return answer("vector", [{"metric": one, "value": [START, "1e8"]} for one in metrics])
    if form == "list":
        return json.dumps(matrix).encode()
    if form == "lines":
        return "\n".join(map(json.dumps, matrix)).encode()
    if form == "VictoriaMetrics":
        moments = [at * 1000 for at in TIMES]
        rows = [{"metric": one, "values": [1e8] * len(moments), "timestamps": moments} for one in metrics]
        return "\n".join(map(json.dumps, rows)).encode()
    columns = sorted({label for labels in all_labels for label in labels})
    rows_of_table = [
        [str(at), *(labels.get(one, "") for one in columns), "1e8"] for labels in all_labels for at in TIMES
    ]
    return "\n".join(map(",".join, (["timestamp", *columns, "memory"], *rows_of_table))).encode()


def answer(kind: str, result: list[Any]) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}}).encode()


def read(content: bytes) -> tuple[list[Series], RepeatedSeries, UsageFile]:
    file, repeated = UsageFile("usage", content), RepeatedSeries()
    return list(repeated.without_repeats(file.iter_series())), repeated, file


def names(series: Series) -> tuple[str, str, str]:
    return series.namespace, series.pod, series.container


@given(labels_of_web, st.sampled_from(FORMS))
def test_the_measured_container_has_the_usage_and_not_the_program_that_reports_it(
    labels: dict[str, str], form: str
) -> None:
    own = {**EXPORTER, **dict(zip(CADVISOR_LABELS, EXPORTER.values(), strict=True))}
    series, repeated, file = read(written(form, labels, own))
    assert [names(one) for one in series] == [WEB, tuple(EXPORTER.values())]
    assert (repeated.count, repeated.mistakes(), file.mistakes) == (0, [], [])


@given(st.sampled_from(FORMS), st.sampled_from(("id", "name", "image")), st.booleans())
def test_different_containers_under_one_name_are_refused(form: str, label: str, backwards: bool) -> None:
    pair = [{**EXPORTER, label: "/a"}, {**EXPORTER, label: "/b"}]
    _, repeated, _ = read(written(form, *(reversed(pair) if backwards else pair)))
    [mistake] = repeated.mistakes()
    assert (repeated.count, f"`{label}`" in mistake.got, "monitoring/cadvisor-x/cadvisor" in mistake.got) == (
        0,
        True,
        True,
    )


@given(st.sampled_from(FORMS), st.sampled_from(({}, {"id": "/a"}, {"id": "/a", "name": "x"})))
def test_a_second_reporter_of_one_container_repeats_it(form: str, labels: dict[str, str]) -> None:
    own = {**EXPORTER, "id": "/a", "name": "y"}
    series, repeated, _ = read(written(form, own, {**EXPORTER, **labels}))
    assert (len(series), repeated.mistakes()) == (1, [])


def test_a_container_that_restarted_has_another_cgroup_afterwards() -> None:
    def life(times: range, path: str) -> Series:
        return Series(
            namespace="shop",
            pod="web-0",
            container="app",
            resource="cpu",
            times=times,
            values=[1.0] * len(times),
            identity=(("id", path),),
        )

    lives = [life(range(0, 36_000, 60), "/a"), life(range(35_700, 72_000, 60), "/b")]
    repeated = RepeatedSeries()
    times = [int(at) for one in repeated.without_repeats(lives) for at in one.times]
    assert (times == sorted(set(times)), repeated.count, repeated.mistakes()) == (True, 0, [])


PARTS = [
    ({"exported_pod": "web-0", "exported_namespace": "shop"}, "without exported_container"),
    ({"exported_pod": "web-0", "exported_container": "app"}, "without exported_namespace"),
    ({"exported_container": "app"}, "without exported_namespace"),
    ({CADVISOR_LABELS[1]: "web-0"}, f"without {CADVISOR_LABELS[0]}"),
    ({"pod_name": "web-0"}, "pod and pod_name differ"),
]


@pytest.mark.parametrize(("labels", "words"), PARTS, ids=[words for _, words in PARTS])
@pytest.mark.parametrize("form", FORMS)
def test_a_series_whose_labels_do_not_name_one_container_is_refused(
    labels: dict[str, str], words: str, form: str
) -> None:
    series, _, file = read(written(form, {**EXPORTER, **labels}))
    assert (series, [words in mistake.got for mistake in file.mistakes]) == ([], [True])


@pytest.mark.parametrize(
    ("labels", "subject"),
    [
        ({"namespace": "kube-system", "exported_namespace": "shop", "pod": "web-0", "container": "app"}, WEB),
        ({"namespace": "shop", "pod_name": "web-0", "container_name": "app"}, WEB),
        ({"k8s_namespace_name": "shop", "k8s_pod_name": "web-0", "k8s_container_name": "app"}, WEB),
        ({**EXPORTER, CADVISOR_LABELS[0]: "shop", CADVISOR_LABELS[1]: "web-0"}, ("shop", "web-0", "")),
    ],
)
def test_other_names_of_the_labels_are_read(labels: dict[str, str], subject: tuple[str, str, str]) -> None:
    assert subject_of(lambda label: labels.get(label, "")) == Subject(*subject)
