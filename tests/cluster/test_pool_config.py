"""A pool's ConfigMap: what it says, and every mistake in it at once."""

from typing import Any

import pytest

from trimtab.cluster.pool import Goal, Headroom, Pool, Spare, pool_from_preset
from trimtab.cluster.pool_config import PoolReading, read_pools
from trimtab.cluster.pool_labels import POOL_LABEL
from trimtab.cluster.timestamps import WeeklyWindow
from trimtab.cluster.yaml_documents import Document


def document(text: Any, name: str = "web", key: str = "pool.yaml") -> Document:
    metadata = {"name": f"pool-{name}", "labels": {POOL_LABEL: name}}
    return Document(file="pools.yaml", index=0, value={"kind": "ConfigMap", "metadata": metadata, "data": {key: text}})


def read(text: str) -> PoolReading:
    return read_pools([document(text)])


def only(text: str) -> Pool:
    reading = read(text)
    assert not reading.mistakes, [str(m) for m in reading.mistakes]
    return reading.pools[0]


WHOLE = """
preset: keen
nodes: {labels: {team: web}}
goal: nodes
dryRun: false
underUsed: {cpu: 70%, example.com/gpu: 40, count: 2, for: 5m}
age: {node: 1h30m, receiver: 30s, pod: 1m}
quiet: 15m
keep: {nodes: 3, nodesPerZone: 1, spare: zone, headroom: {percent: 10, nodes: 1, largestPod: true}}
pace: {drains: 2, evictionsPerHour: 50, leastGain: 5}
prices: {big: 1.5}
windows: [{days: [sat, sun], from: "22:00", to: "05:30", timeZone: Europe/Berlin}]
optOut: {nodes: [example.com/stay], pods: [example.com/stay]}
protect: {singleReplicas: true, jobs: false, notReady: true}
"""


def test_the_values_of_fields_are_read() -> None:
    pool = only(WHOLE)
    assert (pool.name, pool.labels, pool.goal, pool.dry_run) == ("web", {"team": "web"}, Goal.NODES, False)
    assert (pool.under, pool.under_count, pool.under_for) == ({"cpu": 70, "example.com/gpu": 40}, 2, 300)
    assert (pool.node_age, pool.receiver_age, pool.min_pod_age, pool.quiet) == (5400, 30, 60, 900)
    assert (pool.min_nodes, pool.min_per_zone, pool.spare) == (3, 1, Spare.ZONE)
    assert pool.headroom == Headroom(percent=10, nodes=1, largest_pod=True)
    assert (pool.drains, pool.evictions_per_hour, pool.least_gain) == (2, 50, 5)
    assert pool.prices == {"big": 1_500_000}
    assert pool.windows == (WeeklyWindow(days=("sat", "sun"), start=1320, end=330, zone="Europe/Berlin"),)
    assert (pool.keep_nodes, pool.keep_pods) == (("example.com/stay",), ("example.com/stay",))
    assert (pool.single_replicas, pool.jobs, pool.not_ready) == (False, True, False)


def test_the_options_of_its_node_group_are_read_as_the_autoscalers_flags() -> None:
    text = "scaleDownUtilizationThreshold: 70%, scaleDownUnneededTime: 20m, ignoreDaemonSetsUtilization: true"
    assert only(f"groupOptions: {{{text}}}").group_options == {
        "scale-down-utilization-threshold": "0.70",
        "scale-down-unneeded-time": "1200s",
        "ignore-daemonsets-utilization": "true",
    }
    [mistake] = read("groupOptions: {scaleDownUtilisationThreshold: 70}").mistakes
    assert "scaleDownUtilizationThreshold" in mistake.sentence


def test_nothing_said_is_balanced_and_dry() -> None:
    pool = only("{}")
    assert (pool.dry_run, pool.under["cpu"], pool.goal) == (True, 80, Goal.COST)


def test_a_headroom_that_says_nothing_keeps_the_presets() -> None:
    assert only("preset: careful\nkeep: {headroom: {}}").headroom == pool_from_preset("careful", "web").headroom


def test_all_mistakes_are_told_together_with_their_places() -> None:
    reading = read(
        "presett: keen\ngoal: money\nkeep: {nodes: -1, headroom: {percent: 200}}\nquiet: soon\nunderUsed: {cpus: 5}\n"
    )
    assert not reading.pools
    fields = sorted(mistake.field for mistake in reading.mistakes)
    assert fields == ["goal", "keep.headroom.percent", "keep.nodes", "presett", "quiet", "underUsed.cpus"]
    assert any("did you mean 'preset'" in str(mistake) for mistake in reading.mistakes)
    assert all(mistake.line for mistake in reading.mistakes)


@pytest.mark.parametrize(
    "text",
    [
        "goal: [cost]",
        "dryRun: yes please",
        "pace: {drains: 0}",
        "pace: {drains: 1.5}",
        "prices: {x: -1}",
        "prices: 3",
        "windows: nightly",
        "windows: [{from: '25:00', to: '01:00'}]",
        "windows: [{from: '01:00', to: '02:00', timeZone: Mars/Base}]",
        "optOut: {nodes: all}",
        "nodes: some",
        "windows: [{days: [someday], from: '01:00', to: '02:00'}]",
        "nodes: {labels: {}}",
        "preset: [1]",
        "- a list",
        "keep: 3",
        "underUsed: 5",
        "age: {node: -5m}",
        "quiet: true",
        "a: [unclosed",
        "windows: [{days: [[mon]], from: '01:00', to: '02:00'}]",
        "windows: [{from: '2²:00', to: '03:00'}]",
        "windows: [{from: '01:0²', to: '03:00'}]",
        "underUsed: {cpu: ²%}",
        "prices: {x: 0.0000001}",
        "goal: cost\n---\ngoal: nodes",
    ],
)
def test_nonsense_is_refused(text: str) -> None:
    reading = read(text)
    assert reading.mistakes
    assert not reading.pools


def test_a_pool_without_settings_or_a_second_one_of_the_name_is_a_mistake() -> None:
    assert read_pools([document(None)]).mistakes
    twice = read_pools([document("{}"), document("{}")])
    assert len(twice.pools) == 1
    assert "no other pool" in str(twice.mistakes[0])


def test_other_config_maps_are_not_ours() -> None:
    other = Document(file="f", index=0, value={"kind": "ConfigMap", "metadata": {"name": "x"}, "data": {}})
    assert read_pools([other, Document(file="f", index=1, value=["odd"])]) == PoolReading()
