"""Is each setting of a pool obeyed, as its ConfigMap writes it? What is said, and what becomes of node a.

Every line is asked twice, without the setting and with it: without it node a goes.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from tests.cluster_of import NOW, ZONE, Item, cluster, node, pod
from trimtab.cluster.documents.declared_fields import iterate_fields
from trimtab.cluster.pool import Pool, values_without_limits
from trimtab.cluster.pool_config import SETTINGS_KEY, read_pools
from trimtab.cluster.pool_labels import POOL_LABEL
from trimtab.cluster.timestamps import format_timestamp
from trimtab.cluster.yaml_documents import Document
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.drain.start import steps_within_pace
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_types import Observations, Plan
from trimtab.scheduling.cluster_model import build_cluster_model

ROOT = Path(__file__).resolve().parents[2]
GPU = "nvidia.com/gpu"
SINCE = Observations(under_since={"a": NOW - 900}, evictions=())
JUST = format_timestamp(NOW - 900)
MARKED = {"example.com/stay": "true"}
KEPT = {"trimtab.dev/do-not-disrupt": "true"}


def pool(*said: str) -> Pool:
    """A bold pool over all nodes, and what is said of it beside that."""
    bold = () if any(s.startswith("preset") for s in said) else ("preset: keen",)
    text = "\n".join(("nodes: all", *bold, *said))
    value = {
        "kind": "ConfigMap",
        "metadata": {"name": "x", "labels": {POOL_LABEL: "web"}},
        "data": {SETTINGS_KEY: text},
    }
    reading = read_pools([Document(file="test", index=0, value=value)])
    assert not reading.mistakes, reading.mistakes
    return reading.pools[0]


def planned(items: list[Item], *said: str) -> Plan:
    return make_plan(build_cluster_model(cluster(*items)), [pool(*said)], PlanningContext(now=NOW, observations=SINCE))


def fate(items: list[Item], *said: str) -> str:
    plan = planned(items, *said)
    return plan.refusals["a"].code.name if "a" in plan.refusals else "goes"


def full(name: str, cpu: str = "1", **more: object) -> Item:
    """A node that keeps what is on it."""
    return pod(f"k-{name}", name, cpu, annotations=KEPT, **more)


def pair(*on_a: Item, a: Item | None = None, b: Item | None = None) -> list[Item]:
    """Node a with these pods, and b, which stays."""
    return [a or node("a"), b or node("b"), full("b"), *on_a]


HALF = pair(pod("x-1", "a", "2400m", "1Gi"))
FAT = pair(pod("x-1", "a", "1", "40Gi"))
GPUS = pair(pod("x-1", "a", extra={GPU: "3"}), a=node("a", extra={GPU: "4"}), b=node("b", extra={GPU: "4"}))
LIGHT = pair(pod("x-1", "a", "1"))
ZONES = [
    *(node(n, labels={ZONE: z}) for n, z in (("a", "one"), ("b", "two"), ("c", "two"))),
    full("b"),
    full("c"),
    pod("x-1", "a", "1"),
]
TALL = pair(pod("x-1", "a", "2"), b=node("b", "3"))
JOB = pair(pod("x-1", "a", owner="Job"))


SETTINGS = [
    ("underUsed: {cpu: 50}", HALF, "node-not-under-used"),
    ("underUsed: {cpu: 60}", HALF, "goes"),
    ("underUsed: {memory: 60}", FAT, "node-not-under-used"),
    ("underUsed: {memory: 63}", FAT, "goes"),
    (f"underUsed: {{{GPU}: 70}}", GPUS, "node-not-under-used"),
    (f"underUsed: {{{GPU}: 75}}", GPUS, "goes"),
    ("underUsed: {pods: 20}", pair(pod("x-1", "a"), a=node("a", pods=4)), "node-not-under-used"),
    ("underUsed: {count: 3}", LIGHT, "too-few-under-used"),
    ("underUsed: {for: 15m}", LIGHT, "goes"),
    ("underUsed: {for: 16m}", LIGHT, "not-under-used-long-enough"),
    ("age: {node: 25h}", LIGHT, "node-too-young"),
    ("age: {receiver: 25h}", LIGHT, "no-place"),
    ("age: {pod: 25h}", LIGHT, "pod-must-stay"),
    ("quiet: 16m", [*LIGHT, node("new", "100m", created=JUST, cordoned=True)], "pool-not-quiet"),
    ("quiet: 15m", [*LIGHT, node("new", "100m", created=JUST, cordoned=True)], "goes"),
    ("keep: {nodes: 2}", LIGHT, "pool-at-minimum"),
    ("keep: {nodesPerZone: 1}", ZONES, "pool-at-minimum"),
    ("keep: {headroom: {percent: 50}}", LIGHT, "goes"),
    ("keep: {headroom: {percent: 51}}", LIGHT, "headroom"),
    ("keep: {headroom: {nodes: 1}}", LIGHT, "headroom"),
    ("keep: {headroom: {largestPod: true}}", TALL, "no-place"),
    ("keep: {spare: node}", LIGHT, "headroom"),
    ("keep: {spare: zone}", [*ZONES, full("c", "2500m", app="l")], "headroom"),
    ("pace: {leastGain: 1001}", LIGHT, "not-worth-it"),
    ("pace: {leastGain: 1000}", LIGHT, "goes"),
    ("optOut: {nodes: [example.com/stay]}", pair(a=node("a", annotations=MARKED)), "node-kept"),
    ("optOut: {pods: [example.com/stay]}", pair(pod("x-1", "a", annotations=MARKED)), "pod-must-stay"),
    ("protect: {singleReplicas: true}", LIGHT, "pod-must-stay"),
    ("protect: {notReady: true}", pair(pod("x-1", "a", ready=False)), "pod-must-stay"),
    ("enabled: false", LIGHT, "pool-disabled"),
    ('windows: [{from: "23:00", to: "00:30"}]', LIGHT, "goes"),
    ('windows: [{from: "23:00", to: "00:30", timeZone: Europe/Berlin}]', LIGHT, "outside-window"),
    ('windows: [{from: "00:30", to: "01:30", timeZone: Europe/Berlin}]', LIGHT, "goes"),
    ("windows: [{days: [fri], from: '00:00', to: '23:59'}]", LIGHT, "outside-window"),
]
"""What is said, the nodes and pods, and what becomes of node a."""


OTHER_TESTS = {
    "autoscaler": "tests/compaction/test_plan_autoscaler.py",
    "commitments": "tests/compaction/test_commitments.py",
    "critical_pods": "tests/compaction/test_blockers_system.py",
    "drains": "tests/compaction/test_plan.py",
    "dry_run": "tests/compaction/drain/test_state_machine.py",
    "everything": "tests/cluster/test_pool_names.py",
    "evictions_per_hour": "tests/compaction/test_plan.py",
    "goal": "tests/compaction/test_plan.py",
    "group_options": "tests/compaction/test_plan_autoscaler.py",
    "groups": "tests/compaction/groups/test_group_moves.py",
    "group_labels": "tests/compaction/groups/test_label_groups.py",
    "jobs": "tests/compaction/test_blockers.py",
    "keeps_forecast": "tests/compactor/test_pool_demand.py",
    "payback": "tests/compactor/test_pool_demand.py",
    "labels": "tests/cluster/test_pool_names.py",
    "lead_max_threshold": "tests/compaction/test_plan_autoscaler.py",
    "max_grace": "tests/compaction/test_autoscaler_flags_obeyed.py",
    "max_term_cost": "tests/compaction/terms/test_term_obstacles.py",
    "max_term_delay": "tests/compaction/terms/test_term_obstacles.py",
    "openings_per_hour": "tests/compaction/drain/test_release.py",
    "pending_limit": "tests/compaction/search/test_reserved_capacity.py",
    "prices": "tests/compaction/test_plan.py",
    "replace": "tests/compaction/replace/test_plan_replacements.py",
    "replace_across": "tests/compaction/replace/test_plan_replacements.py",
    "resize_canary": "tests/compactor/test_settings.py",
    "resize_verify": "tests/compactor/test_settings.py",
    "resizes_per_hour": "tests/compactor/test_settings.py",
    "schedulers": "tests/compaction/test_plan_schedulers.py",
    "surge": "tests/compaction/surge/test_surge_plan.py",
    "unready": "tests/compaction/test_blockers_system.py",
}
"""Field of `Pool` that has no row above → the test of what obeys it."""


def written_paths(value: object, path: tuple[str, ...] = ()) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from written_paths(inner, (*path, key))
    else:
        yield ".".join(path)


def test_every_setting_has_a_row_or_a_test_elsewhere() -> None:
    """To a new setting of `Pool`: add a row to SETTINGS, or to OTHER_TESTS the test of what obeys it."""
    paths = {path for said, *_ in SETTINGS for path in written_paths(yaml.safe_load(said))}
    fields: dict[str, set[str]] = {}
    for one in iterate_fields(Pool):
        fields.setdefault(".".join(one.target[:-1] if one.document.entry else one.target), set()).add(one.document.path)
    missing = {name for name, own in fields.items() if not any(fnmatch(path, key) for path in paths for key in own)}
    assert missing == OTHER_TESTS.keys(), missing ^ OTHER_TESTS.keys()
    texts = {file: (ROOT / file).read_text("utf-8") for file in OTHER_TESTS.values()}
    assert [name for name, file in OTHER_TESTS.items() if not re.search(rf"\b{name}=", texts[file])] == []


@pytest.mark.parametrize(("said", "items", "code"), SETTINGS)
def test_a_setting_is_obeyed(said: str, items: list[Item], code: str) -> None:
    assert (fate(items), fate(items, said)) == ("goes", code)


@pytest.mark.parametrize(("said", "items", "code"), [row for row in SETTINGS if row[2] in values_without_limits()])
def test_a_setting_that_keeps_nodes_keeps_none_in_the_variant_without_it(
    said: str, items: list[Item], code: str
) -> None:
    """A setting that this names lacks its `NodeLimit` in trimtab/cluster/pool.py, or has a wrong value there."""
    without = replace(pool(said), **values_without_limits()[code])
    plan = make_plan(build_cluster_model(cluster(*items)), [without], PlanningContext(now=NOW, observations=SINCE))
    assert {node: reason.code.name for node, reason in plan.refusals.items() if node == "a"} == {}


def test_jobs_stay_unless_their_protection_is_taken_off() -> None:
    assert (fate(JOB), fate(JOB, "protect: {jobs: false}")) == ("pod-must-stay", "goes")


@pytest.mark.parametrize(
    ("said", "begin"), [("pace: {drains: 1}", 1), ("pace: {drains: 2}", 2), ("pace: {evictionsPerHour: 2}", 2)]
)
def test_the_pace_is_kept(said: str, begin: int) -> None:
    items = [node("k", "8"), full("k"), *(node(n) for n in "abc"), *(pod(f"{n}-1", n) for n in "abc")]
    mine, observations = pool(said), Observations(under_since=dict.fromkeys("abck", 0))
    wave = make_plan(
        build_cluster_model(cluster(*items)), [mine], PlanningContext(now=NOW, observations=observations)
    ).waves[0]
    assert (len(wave.steps), len(steps_within_pace(wave, mine, observations, NOW))) == (3, begin)


@pytest.mark.parametrize(
    ("preset", "code"), [("careful", "node-not-under-used"), ("balanced", "goes"), ("keen", "goes")]
)
def test_presets_differ_in_boldness(preset: str, code: str) -> None:
    items = [*pair(pod("x-1", "a", "2400m", "1Gi"), pod("x-2", "b", "100m")), node("c"), full("c", app="l")]
    assert fate(items, f"preset: {preset}", "protect: {singleReplicas: false}") == code
