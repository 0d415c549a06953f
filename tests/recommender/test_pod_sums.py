"""The usage of all containers of a pod together is recorded beside theirs, and nobody takes it for a container's."""

from dataclasses import replace

import pytest

from tests.build import container, owner_key, pod
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.request_parameters import NamespaceRules, build_parameters
from trimtab.cluster.whole_pods import MAX_NAME_LENGTH, is_whole_pod, name_whole_pod, split_whole_pod
from trimtab.histogram.batch_history import BatchHistory, ContainerKey
from trimtab.histogram.daily_rows import rows_of_live
from trimtab.histogram.live_history import HistoryImport, LiveHistory
from trimtab.histogram.pod_sums import WholePodSamples
from trimtab.histogram.time_buckets import DAY
from trimtab.recommender.collector import InstantCollector
from trimtab.recommender.pod_watcher import PodWatchState, ownership_with_containers
from trimtab.recommender.publisher import compute_recommendations
from trimtab.usage.owners import OwnerIndex
from trimtab.usage.series import PodRef, Series, single_sample

START = 20_000 * DAY
WEB = owner_key("Deployment/web", "shop")
SUM = ContainerKey("shop", "Deployment", "web", "app+proxy")


def owners() -> OwnerIndex:
    return OwnerIndex({("shop", "web-1"): WEB}, {})


def samples(second: int, app: float, proxy: float) -> list[Series]:
    """One reading of the pod, whose containers were measured at moments that differ by a second."""
    return [
        single_sample(PodRef(namespace="shop", name="web-1"), name, "cpu", second + late, value)
        for late, (name, value) in enumerate({"app": app, "proxy": proxy}.items())
    ]


def recorded(readings: list[list[Series]], names: dict[tuple[str, str], str]) -> LiveHistory:
    history = LiveHistory(14)
    collector = InstantCollector(lambda: readings, lambda: WholePodSamples(names))
    collector.collect_usage(history, owners(), START + 2 * DAY, lambda: True)
    return history


def alternating(hours: int = 30) -> list[list[Series]]:
    """Two containers that use a core in turn, every minute."""
    return [samples(START + 60 * n, float(n % 2), float((n + 1) % 2)) for n in range(60 * hours)]


def test_the_average_of_the_containers_is_recorded_and_published_under_the_names_of_all() -> None:
    history = recorded(alternating(), {("shop", "web-1"): "app+proxy"})
    result = compute_recommendations(history, START + 2 * DAY).workloads["shop/Deployment/web"]
    assert result.keys() == {"app", "proxy", "app+proxy"}
    assert float(str(result["app"].cpu.p95).rstrip("m")) >= 1  # type: ignore[union-attr]
    assert 400 <= int(str(result["app+proxy"].cpu.p95).rstrip("m")) <= 600  # type: ignore[union-attr]


def test_a_reading_without_one_of_the_containers_does_not_count() -> None:
    half = [reading[:1] for reading in alternating(1)]
    assert SUM not in recorded(half, {("shop", "web-1"): "app+proxy"}).list_containers()
    assert SUM not in recorded(alternating(1), {}).list_containers()


def test_ranges_are_averaged_moment_by_moment_whatever_their_order() -> None:
    whole_pods, history = WholePodSamples({}, {WEB: "app+proxy"}), LiveHistory(14)
    app, proxy = replace(SUM, name="app"), replace(SUM, name="proxy")
    whole_pods.add_samples(app, "gone", "cpu", (START + 300, START + 600), (1.0, 3.0))
    whole_pods.add_samples(proxy, "gone", "cpu", (START + 600, START + 900), (1.0, 5.0))
    whole_pods.add_samples(app, "gone", "cpu", (START + 900,), (1.0,))
    whole_pods.add_samples(replace(SUM, name="other"), "gone", "cpu", (START + 600,), (9.0,))
    (together,) = whole_pods.take_averages()
    assert (together.key, list(together.times), list(together.values)) == (SUM, [START + 600, START + 900], [2.0, 3.0])
    assert list(whole_pods.take_averages()) == []
    history_import = HistoryImport(history)
    history_import.add_series(SUM, "gone", "cpu", together.times, together.values)
    history_import.commit("shop", START + DAY)
    assert history.list_containers() == [SUM]


@pytest.mark.parametrize("names", [("app",), tuple(f"container-{n:02}" for n in range(60))])
def test_a_single_container_and_too_many_have_no_name_together(names: tuple[str, ...]) -> None:
    assert name_whole_pod(names) == ""


def test_the_name_is_that_of_no_container_and_names_all() -> None:
    assert name_whole_pod(["proxy", "app"]) == "app+proxy"
    assert is_whole_pod("app+proxy")
    assert not is_whole_pod("app")
    assert split_whole_pod("app+proxy") == ("app", "proxy")
    assert len(name_whole_pod([f"c{n}" for n in range(99)])) <= MAX_NAME_LENGTH


def test_init_containers_that_end_are_left_out_and_sidecars_count() -> None:
    sidecar = container("proxy", restart_policy="Always")
    made = pod(container("app"), init=(container("setup"), sidecar))
    assert ownership_with_containers(made).whole_pod == "app+proxy"


def test_pods_that_are_gone_had_the_containers_of_those_that_exist_if_these_agree() -> None:
    state = PodWatchState()
    for number, names in enumerate((("app", "proxy"), ("app", "proxy"))):
        made = pod(*map(container, names), owner="Deployment/web", name=f"web-{number}")
        of_pod = ownership_with_containers(made)
        state.pods["shop", f"web-{number}"] = replace(of_pod, owners=(OwnerKey("shop", WEB.kind, "web"),))
    assert state.collect_whole_pods(with_gone=True).names_by_owner == {WEB: "app+proxy"}
    state.pods["shop", "web-1"] = replace(state.pods["shop", "web-1"], whole_pod="app+log")
    assert state.collect_whole_pods(with_gone=True).names_by_owner == {WEB: ""}
    assert state.collect_whole_pods(with_gone=False).names_by_owner == {}


def test_what_is_made_for_containers_has_no_whole_pods() -> None:
    history = recorded(alternating(), {("shop", "web-1"): "app+proxy"})
    batch = BatchHistory(14)
    history.copy_to_batch(batch)
    assert [key.name for key in batch.list_containers()] == ["app", "proxy"]
    assert {row.container.name for row in rows_of_live(history, START // DAY)} == {"app", "proxy"}
    usages = compute_recommendations(history, START + 2 * DAY).workloads["shop/Deployment/web"]
    flat = {(WEB, name): usage for name, usage in usages.items()}
    data = build_parameters(flat, NamespaceRules(), START + 2 * DAY).data
    assert sorted(data) == ["Deployment.web.app", "Deployment.web.proxy", "_namespace"]
