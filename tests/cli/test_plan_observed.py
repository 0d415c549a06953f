"""A plan offline, with what a compactor saw before the snapshot was taken."""

from tests.cluster_of import NOW, Item, cluster, node
from trimtab.compaction.drain import pool_state as memories
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compaction.room_forecast import SLOT_SECONDS, DemandHistory
from trimtab.inputs.plan_inputs import read_observations


def state(pool: str, text: str) -> Item:
    meta = {"name": f"trimtab-state-{pool}", "namespace": "trimtab-system", "labels": {memories.STATE_LABEL: pool}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {memories.STATE_KEY: text}}


def test_without_a_compactors_state_nothing_was_observed() -> None:
    assert read_observations(cluster(node("n1"))).observations is None


def test_the_state_of_every_pool_is_read_and_nonsense_is_told() -> None:
    web = memories.encode_state(PoolState(under={"n1": NOW}, moved={"a/b": NOW}))
    past_observations = read_observations(cluster(node("n1"), state("web", web), state("odd", "{")))
    assert past_observations.observations is not None
    assert (past_observations.observations.under_since, past_observations.moved) == ({"n1": NOW}, frozenset({"a/b"}))
    assert any("trimtab-state-odd" in note for note in past_observations.notes)


def test_the_histories_of_pools_are_read_for_forecasts() -> None:
    history = DemandHistory(first=NOW // SLOT_SECONDS - 3, cpu=(100, 110, 120, 130), memory=(0,) * 4)
    web = memories.encode_state(PoolState(demand=history))
    assert read_observations(cluster(node("n1"), state("web", web))).histories == {"web": history}
