"""A watch read as one view: what counts as a pool, and what as an autoscaler."""

from trimtab.cluster.api.meta import Metadata
from trimtab.cluster.pool import LABEL
from trimtab.cluster.snapshot import ConfigMap
from trimtab.compactor.sight import autoscaler, pools_of
from trimtab.compactor.store import reopened

STATUS = "clusterWide: {health: {status: Healthy}, scaleUp: {status: NoActivity}}"
UPDATED = {"cluster-autoscaler.kubernetes.io/last-updated": "2026-01-02 15:04:05.9 +0000 UTC"}


def config_map(name: str, namespace: str = "ours", *, data: dict[str, str], **more: dict[str, str]) -> ConfigMap:
    return ConfigMap(metadata=Metadata(name=name, namespace=namespace, **more), data=data)  # type: ignore[arg-type]


def test_a_labelled_configmap_is_a_pool_and_its_mistakes_are_told() -> None:
    good = config_map("a", data={"pool.yaml": "mode: act"}, labels={LABEL: "web"})
    bad = config_map("b", data={"pool.yaml": "mode: acts"}, labels={LABEL: "odd"})
    other = config_map("c", data={"pool.yaml": "mode: act"})
    found = pools_of([other, bad, good])
    assert [(pool.name, pool.dry_run) for pool in found.pools] == [("web", False)]
    assert len(found.mistakes) == 1


def test_the_autoscaler_is_who_reports_in_kube_system() -> None:
    status = config_map("cluster-autoscaler-status", "kube-system", data={"status": STATUS}, annotations=UPDATED)
    found = autoscaler([status], ["--scale-down-unneeded-time=2m"])
    assert found is not None
    assert (found.healthy, found.flags["scale-down-unneeded-time"]) == (True, "2m")
    assert autoscaler([config_map("cluster-autoscaler-status", "team-a", data={"status": STATUS})], []) is None
    odd = autoscaler([config_map("cluster-autoscaler-status", "kube-system", data={"status": "?"})], [])
    assert odd is not None
    assert not odd.healthy


def test_a_person_opens_a_pool_by_a_word_on_its_state() -> None:
    said = config_map(
        "s", data={}, labels={"trimtab.dev/state": "web"}, annotations={"trimtab.dev/reopened": "2026-01-02T00:00:00Z"}
    )
    assert reopened((said,), "web") == 1767312000
    assert reopened((said,), "other") is None
