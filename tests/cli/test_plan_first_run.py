"""`trimtab plan` without configuration: presets beside each other, what keeps the rest and costs how much, guesses."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.snapshots import half_empty, pool, snapshot, told, trimtab
from tests.cluster_of import Item, node, pod
from tests.reasons import has_facts
from trimtab.cli.reports.plan_table import describe_unknown_load
from trimtab.cluster.pool import Pool
from trimtab.cluster.pool_config import PoolReading
from trimtab.inputs.live_cluster import ClusterOptions
from trimtab.inputs.plan_inputs import PlanOptions, has_own_settings

KIND, REGION = "node.kubernetes.io/instance-type", "topology.kubernetes.io/region"


def machines(*names: str, region: str = "us-east-1", **labels: str) -> list[Item]:
    both = {KIND: "m5.xlarge", REGION: region, "nodepool": "web", **labels}
    return [node(name, labels=both) for name in names]


@pytest.fixture
def pinned(tmp_path: Path) -> Path:
    """Four nodes, each kept by a pod that nobody would make again."""
    return snapshot(tmp_path, *machines(*"abcd"), *(pod(f"bare-{name}", name, owner="") for name in "abcd"))


def test_the_first_run_shows_the_three_presets(pinned: Path) -> None:
    report = told("plan", "--cluster", pinned)
    assert [(one["name"], one["isPlanned"]) for one in report["presets"]] == [
        ("careful", False),
        ("balanced", True),
        ("keen", False),
    ]


def test_what_keeps_the_rest_is_priced_and_says_which_knob_to_turn(pinned: Path) -> None:
    (keeper,) = told("plan", "--cluster", pinned)["keepers"]
    assert (keeper["code"], keeper["moreNodes"], keeper["costs"]["amount"]) == ("pod-without-owner", 3, 420.48)
    short, details = (trimtab("plan", "--cluster", pinned, *more).stdout for more in ((), ("--details",)))
    assert has_facts(short, "pod-without-owner", "$420 a month")
    assert "$420 a month" in details
    assert "these 4 pods" in " ".join(details.split())


def test_pools_with_settings_are_compared_as_well_where_it_takes_no_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = snapshot(tmp_path, *half_empty(pool("web", "preset: keen")))
    assert len(told("plan", "--cluster", cluster)["presets"]) == 3
    monkeypatch.setattr("trimtab.cli.plan.command.MAX_COMPARED_NODES", 2)
    assert told("plan", "--cluster", cluster)["presets"] == []
    assert len(told("plan", "--cluster", cluster, "--compare")["presets"]) == 3


def test_the_setting_that_keeps_nodes_is_priced_in_the_text_with_the_way_to_change_it(tmp_path: Path) -> None:
    settings = "preset: keen\nkeep: {headroom: {percent: 60}}"
    shown = trimtab("plan", "--cluster", snapshot(tmp_path, *half_empty(pool("web", settings)))).stdout
    assert has_facts(shown, "keep.headroom", "keep.spare")


def test_the_text_has_the_price_of_each_pools_nodes_and_where_it_comes_from(pinned: Path) -> None:
    (row,) = told("plan", "--cluster", pinned)["poolPrices"]
    assert (row["nodes"], row["source"], row["isGuessed"]) == (4, "list", False)
    shown = trimtab("plan", "--cluster", pinned, "--details").stdout
    assert row["instanceType"] in shown
    assert row["text"] in shown


def test_only_a_live_cluster_whose_pools_have_settings_is_planned_as_of_now() -> None:
    web = PoolReading((Pool(name="web"),))
    live = PlanOptions(cluster=ClusterOptions(("live",)))
    assert has_own_settings(live, web)
    assert not has_own_settings(live, replace(web, assumed=True))
    assert not has_own_settings(replace(live, presets=("all=keen",)), web)
    assert not has_own_settings(PlanOptions(cluster=ClusterOptions(("capture.json",))), web)


def test_no_clock_is_read_where_the_time_is_none(pinned: Path) -> None:
    assert told("plan", "--cluster", pinned, "--now", "none") == told("plan", "--cluster", pinned)


def test_it_can_be_left_out(pinned: Path) -> None:
    assert told("plan", "--cluster", pinned, "--no-compare")["keepers"] == []


@pytest.mark.parametrize(
    ("labels", "guessed", "source"),
    [
        ({}, 0.0, "list"),
        ({"karpenter.sh/capacity-type": "spot"}, 49.06, "spot-discount"),
        ({REGION: ""}, 140.16, "list-region-unknown"),
    ],
)
def test_what_is_guessed_is_said(tmp_path: Path, labels: dict[str, str], guessed: float, source: str) -> None:
    cluster = snapshot(tmp_path, *machines("a", "b", **labels), pod("web-0", "a"), pod("web-1", "b"))
    report = told("plan", "--cluster", cluster, "--preset", "all=keen")
    assert (report["guessed"]["amount"], report["prices"][0]["source"]) == (guessed, source)
    assert ("guess" in trimtab("plan", "--cluster", cluster, "--preset", "all=keen").stdout) is bool(guessed)


def test_in_another_region_the_list_price_is_a_guess(tmp_path: Path) -> None:
    cluster = snapshot(tmp_path, *machines("a", "b", region="eu-central-1"), pod("web-0", "a"), pod("web-1", "b"))
    report = told("plan", "--cluster", cluster, "--preset", "all=keen")
    assert (report["saves"]["unit"], report["prices"][0]["source"]) == ("dollars a month", "list-other-region")
    assert report["guessed"] == report["saves"]


def test_a_price_file_counts_before_everything(tmp_path: Path) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text(
        "InstanceID,Region,AssetClass,InstanceIDField,InstanceType,MarketPriceHourly\n,eu-central-1,node,,m5.xlarge,1\n"
    )
    cluster = snapshot(tmp_path, *machines("a", "b", region="eu-central-1"), pod("web-0", "a"), pod("web-1", "b"))
    report = told("plan", "--cluster", cluster, "--preset", "all=keen", "--prices", prices)
    assert (report["saves"]["amount"], report["prices"][0]["source"]) == (730.0, "file")


def test_mistakes_of_a_price_file_are_named(tmp_path: Path) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text("type,price\n")
    result = trimtab("plan", "--cluster", snapshot(tmp_path, *half_empty()), "--prices", prices)
    assert (result.exit_code, "MarketPriceHourly" in result.output) == (2, True)


def test_pools_are_named_by_what_names_them(tmp_path: Path) -> None:
    owned = {"cluster.x-k8s.io/owner-kind": "MachineSet", "cluster.x-k8s.io/owner-name": "md-0"}
    cluster = snapshot(tmp_path, node("a", annotations=owned), node("b", annotations=owned), pod("web-0", "a"))
    report = told("plan", "--cluster", cluster)
    assert [pool["name"] for pool in report["pools"]] == ["md-0"]
    assert any("annotation cluster.x-k8s.io/owner-name (md-0)" in note for note in report["notes"])


def test_on_karpenter_the_pods_that_block_it_are_told(tmp_path: Path) -> None:
    his = {"labels": {"karpenter.sh/nodepool": "np", KIND: "m5.xlarge", REGION: "us-east-1"}}
    holding = {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}
    cluster = snapshot(
        tmp_path, node("a", **his), node("b", **his), pod("web-0", "a", **holding), pod("web-1", "b", **holding)
    )
    report = told("plan", "--cluster", cluster)
    assert (report["nodesAfter"], report["karpenter"]["couldGo"]) == (2, 0)
    assert [(one["code"], one["moreNodes"]) for one in report["karpenter"]["keepers"]] == [("not-safe-to-evict", 1)]
    assert "block Karpenter's consolidation" in trimtab("plan", "--cluster", cluster, "-o", "wide").stdout


def test_the_result_the_unknown_load_and_the_guess_stand_before_any_table_and_the_notes_last(tmp_path: Path) -> None:
    """Ten spot nodes whose pods ask for nothing: what decides whether to believe the plan is read first."""
    spot = machines(*"abcdefghij", **{"karpenter.sh/capacity-type": "spot"})
    pods = [pod(f"web-{number}", name, cpu="") for number, name in enumerate("abcdefghij")]
    lines = trimtab("plan", "--cluster", snapshot(tmp_path, *spot, *pods), "--details").stdout.splitlines()
    table = next(number for number, line in enumerate(lines) if line.startswith("PRESET"))
    head = " ".join(" ".join(lines[:table]).split())
    assert head.startswith("10 nodes → 1")
    assert has_facts(head, "9 of 9", "moved pods", "neither cpu nor memory")
    assert has_facts(head, "guessed spot price", "65 %")
    notes = [number for number, line in enumerate(lines) if line.startswith("Note: ")]
    assert notes[0] > table + 1


@pytest.mark.parametrize(("count", "facts"), [(1, ("it fits", "its new node")), (2, ("they fit", "new nodes"))])
def test_one_moved_pod_without_requests_is_spoken_of_as_one(count: int, facts: tuple[str, ...]) -> None:
    assert has_facts(describe_unknown_load(count, 3), f"{count} of 3", *facts)


def test_a_bound_that_the_settings_set_does_not_speak_of_volume(tmp_path: Path) -> None:
    """Two nodes at 85 % are no candidates: the free volume is not the limit."""
    pods = [pod("web-0", "a", cpu="3400m"), pod("web-1", "b", cpu="3400m")]
    text = " ".join(trimtab("plan", "--cluster", snapshot(tmp_path, *machines("a", "b"), *pods)).stdout.split())
    assert "node-not-under-used" in text
    assert "requests of the pods" not in text


def test_what_a_preset_leaves_on_purpose_is_priced_by_its_setting(tmp_path: Path) -> None:
    """Two nodes at 85 % are too busy for `balanced`: it says so, and what the setting costs."""
    cluster = snapshot(
        tmp_path, *machines(*"abc"), pod("x-0", "a", "3400m"), pod("y-0", "b", "3400m"), pod("z-0", "c", "100m")
    )
    codes = [one["code"] for one in told("plan", "--cluster", cluster)["keepers"]]
    assert "node-not-under-used" in codes


def test_an_openshift_machine_set_names_the_pool_and_is_said_to(tmp_path: Path) -> None:
    nodes = [
        node(f"n-{n}", annotations={"machine.openshift.io/machine": f"openshift-machine-api/web-{n}{n}abc"})
        for n in range(3)
    ]
    report = told("plan", "--cluster", snapshot(tmp_path, *nodes, pod("web-0", "n-0")))
    assert [pool["name"] for pool in report["pools"]] == ["web"]
    assert any("annotation machine.openshift.io/machine (web)" in note for note in report["notes"])


def test_a_pool_of_which_nothing_is_drained_says_what_stops_most_of_its_nodes(tmp_path: Path) -> None:
    web = [*machines(*"ab", nodepool="web"), pod("web-0", "a"), pod("web-1", "b")]
    bare = [*machines(*"cd", nodepool="bare"), *(pod(f"bare-{name}", name, "3", owner="") for name in "cd")]
    shown = trimtab("plan", "--cluster", snapshot(tmp_path, *web, *bare), "--no-compare", "--details").stdout
    assert has_facts(shown, "pod-must-stay: pod-without-owner", "2 nodes")


def test_where_each_pool_drains_a_node_no_column_asks_why_not(tmp_path: Path) -> None:
    nodes = [*machines(*"ab", nodepool="web"), *machines(*"cd", nodepool="api")]
    cluster = snapshot(tmp_path, *nodes, *(pod(f"web-{name}", name, "100m") for name in "abcd"))
    report = told("plan", "--cluster", cluster)
    assert [one["nodesAfter"] for one in report["pools"]] == [1, 1]
    assert "WHY NOTHING" not in trimtab("plan", "--cluster", cluster, "--details").stdout.upper()
