"""A watch read as one view: what counts as a pool, and what as an autoscaler."""

from trimtab.cluster.api.meta import Metadata
from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.pool_labels import POOL_LABEL
from trimtab.cluster.snapshot import ConfigMap
from trimtab.compactor.cluster_reader import list_sources, pools_of, read_autoscaler_status, silent_autoscaler
from trimtab.compactor.pool_state_store import reopened_at
from trimtab.compactor.settings import Settings

STATUS = "clusterWide: {health: {status: Healthy}, scaleUp: {status: NoActivity}}"
UPDATED = {"cluster-autoscaler.kubernetes.io/last-updated": "2026-01-02 15:04:05.9 +0000 UTC"}


def config_map(name: str, namespace: str = "ours", *, data: dict[str, str], **more: dict[str, str]) -> ConfigMap:
    return ConfigMap(metadata=Metadata(name=name, namespace=namespace, **more), data=data)  # type: ignore[arg-type]


def test_a_labelled_configmap_is_a_pool_and_its_mistakes_are_told() -> None:
    good = config_map("a", data={"pool.yaml": "mode: act"}, labels={POOL_LABEL: "web"})
    bad = config_map("b", data={"pool.yaml": "mode: acts"}, labels={POOL_LABEL: "odd"})
    other = config_map("c", data={"pool.yaml": "mode: act"})
    pools = pools_of([other, bad, good])
    assert [(pool.name, pool.dry_run) for pool in pools.pools] == [("web", False)]
    assert len(pools.mistakes) == 1


def test_the_autoscaler_is_who_reports_in_kube_system() -> None:
    status = config_map("cluster-autoscaler-status", "kube-system", data={"status": STATUS}, annotations=UPDATED)
    autoscaler_status = read_autoscaler_status([status], ["--scale-down-unneeded-time=2m"])
    assert autoscaler_status is not None
    assert (autoscaler_status.healthy, autoscaler_status.flags["scale-down-unneeded-time"]) == (True, "2m")
    assert (
        read_autoscaler_status([config_map("cluster-autoscaler-status", "team-a", data={"status": STATUS})], []) is None
    )
    odd = read_autoscaler_status([config_map("cluster-autoscaler-status", "kube-system", data={"status": "?"})], [])
    assert odd is not None
    assert not odd.healthy


def test_the_autoscaler_may_report_elsewhere_under_another_name() -> None:
    status = config_map("scaler-status", "scaling", data={"status": STATUS}, annotations=UPDATED)
    assert read_autoscaler_status([status], []) is None
    autoscaler_status = read_autoscaler_status([status], [], ("scaling", "scaler-status"))
    assert autoscaler_status is not None
    assert autoscaler_status.healthy


def test_of_config_maps_only_ours_and_the_autoscalers_are_asked_for() -> None:
    settings = Settings(namespace="ours", autoscaler_status_configmap="scaler-status")
    maps = [source for source in list_sources(settings) if source.kind == "ConfigMap"]
    assert [(source.namespace, source.label_selector, source.field_selector) for source in maps] == [
        ("ours", POOL_LABEL, ""),
        ("ours", "trimtab.dev/state", ""),
        ("kube-system", "", "metadata.name=scaler-status"),
    ]


def test_a_person_opens_a_pool_by_a_word_on_its_state() -> None:
    actual_config_map = config_map(
        "s",
        data={},
        labels={"trimtab.dev/state": "web"},
        annotations={"trimtab.dev/resumed-at": "2026-01-02T00:00:00Z"},
    )
    assert reopened_at((actual_config_map,), "web") == 1767312000
    assert reopened_at((actual_config_map,), "other") is None


def test_an_autoscaler_that_took_its_status_away_restarts_until_its_silence_counts() -> None:
    last = Autoscaler(updated=1000, threshold=70)
    soon, late = silent_autoscaler(last, 1120, {}), silent_autoscaler(last, 1121, {})
    assert (soon.restarting, soon.is_silent(1120), soon.threshold) == (True, False, 70)
    assert (late.restarting, late.is_silent(1121)) == (False, True)
    assert silent_autoscaler(None, 1000, {}).is_silent(1000)
