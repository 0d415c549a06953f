"""Beside an autoscaler that would take nodes by itself, or tries to: as the loop sees it."""

from dataclasses import replace

from tests.compactor.five import begun, five
from tests.compactor.played import ACT, run
from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.pool import Precedence

GOING = {"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}


def test_what_it_never_takes_is_emptied_in_the_end() -> None:
    played = five()
    played.scaler = Autoscaler(threshold=90)
    loop = run(played, 700)
    assert loop.pool_states.state_of("all").left
    assert not played.told("started")
    run(played, 100, loop)
    assert played.told("started")


def test_a_deletion_that_fails_and_opens_our_node_is_told_as_that() -> None:
    played = five()
    loop, name = begun(played)
    run(played, 10, loop)
    assert "emptied" in [record.what for record in played.records]
    item = played.nodes[name]
    item["spec"]["taints"] = [*item["spec"]["taints"], GOING]
    played._touch(item)
    run(played, 2, loop)
    item["spec"].update(taints=[], unschedulable=False)
    played._touch(item)
    run(played, 2, loop)
    assert played.told("released") == ["drain-deletion-failed"]


def test_what_it_deletes_in_a_pool_that_leads_counts_in_the_hour() -> None:
    played = five()
    played.pools = (replace(ACT, autoscaler=Precedence.LEAD, evictions_per_hour=1),)
    item = played.nodes["n1"]
    item["spec"]["taints"] = [GOING]
    played._touch(item)
    loop = run(played, 30)
    assert len(loop.pool_states.state_of("all").evictions) == 2
    assert not played.told("started")
