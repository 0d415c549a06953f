"""`trimtab reserved formula` as its users call it."""

from pathlib import Path

from tests.cli.snapshots import snapshot, told, trimtab
from tests.cluster_of import Item, node
from tests.reasons import has_facts

GIB = 1 << 30


def with_capacity(item: Item, **capacity: str) -> Item:
    item["status"]["capacity"] = capacity
    return item


def machines(folder: Path) -> Path:
    kind = {"node.kubernetes.io/instance-type": "m5.large", "nodepool": "web", "trimtab.dev/price": "100000"}
    nodes = [
        with_capacity(node(name, cpu="1930m", memory="7Gi", pods=29, labels=kind), cpu="2", memory="7900Mi", pods="29")
        for name in ("a", "b", "c")
    ]
    other = with_capacity(node("d", cpu="3920m", memory="30Gi"), cpu="4", memory="32Gi", pods="110")
    return snapshot(folder, *nodes, other)


def test_a_size_gives_all_profiles_side_by_side() -> None:
    (one,) = told("reserved", "formula", "--cpu", "8", "--memory", "32Gi")["nodes"]
    assert [row["profile"] for row in one["profiles"]] == [
        "gke",
        "aks",
        "aks-1.29",
        "eks",
        "openshift",
        "openshift-2026",
        "gardener",
        "anthos",
        "karpenter",
    ]
    gke = one["profiles"][0]
    assert (gke["memory"]["kube"] / GIB, gke["memory"]["eviction"] / GIB) == (3.56, 100 / 1024)
    assert gke["cpu"]["allocatable"] == 7910
    assert gke["dollarsPerMonth"] is None
    assert sum(term["amount"] for term in gke["cpu"]["terms"]) == 90


def test_details_print_each_bracket() -> None:
    lines = trimtab("reserved", "formula", "--cpu", "5", "--memory", "7.5Gi", "--profile", "gke", "--details").output
    assert has_facts(lines, "25 %", "0Mi", "4Gi")
    assert has_facts(lines, "0.25 %", 4, 5)
    assert "82.5m" in lines


def test_a_type_brings_its_pods_its_kernel_and_its_price() -> None:
    (one,) = told("reserved", "formula", "--type", "m5.large", "--profile", "eks", "--disk", "100Gi")["nodes"]
    eks = one["profiles"][0]
    assert one["maxPods"] == 29
    assert eks["memory"]["kube"] == 574 << 20
    assert eks["memory"]["lost"] > 0
    assert eks["ephemeralStorage"]["kube"] == GIB
    assert one["dollarsPerHour"] == 0.096
    assert eks["dollarsPerMonth"] > 0


def test_cilium_that_leaves_an_interface_alone_is_told() -> None:
    (one,) = told("reserved", "formula", "--type", "m5.xlarge", "--cni", "cilium", "--first-interface-index", "1")[
        "nodes"
    ]
    assert {limit["kind"]: limit["pods"] for limit in one["podLimits"]} == {"kubelet": 58, "cilium": 42}
    assert any("addresses for 42" in note for note in one["notes"])


def test_a_small_range_and_many_pods_are_told() -> None:
    options = ("--cpu", "64", "--memory", "256Gi", "--max-pods", "450", "--node-cidr", "24")
    (one,) = told("reserved", "formula", *options, "--profile", "gardener")["nodes"]
    notes = " ".join(one["notes"])
    assert has_facts(notes, "four fifths", "addresses", "204")
    assert has_facts(notes, "addresses", "253 pods")
    assert "gc_thresh" in notes


def test_prefixes_allow_more_pods_and_reserve_for_them() -> None:
    (one,) = told("reserved", "formula", "--type", "m5.large", "--cni", "vpc-prefix", "--profile", "eks")["nodes"]
    assert one["maxPods"] == 110
    assert one["profiles"][0]["memory"]["kube"] == 1465 << 20


def test_the_nodes_of_a_cluster_show_what_they_withhold_now(tmp_path: Path) -> None:
    web, other = told("reserved", "formula", "--cluster", machines(tmp_path))["nodes"]
    assert (web["name"], web["nodes"]) == ("web, m5.large", 3)
    assert web["now"] == {"millicores": 70, "bytes": (7900 - 7168) << 20}
    assert web["dollarsPerHour"] == 0.1
    assert (other["nodes"], other["maxPods"]) == (1, 110)


def test_a_profile_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "ours.yaml"
    file.write_text("name: ours\nmemory: {base: 200Mi, perPod: 12Mi}\ncpu: {perPod: 1m}\n")
    (one,) = told("reserved", "formula", "--cpu", "4", "--memory", "16Gi", "--profile", file)["nodes"]
    assert one["profiles"][0]["memory"]["kube"] == (200 + 1320) << 20


def test_all_mistakes_are_told_at_once() -> None:
    result = trimtab("reserved", "formula", "--type", "m5.lage", "--profile", "ek", "--disk", "x")
    assert result.exit_code == 2
    assert "did you mean 'eks'" in result.output
    assert "did you mean 'm5.large'" in result.output
    assert "--disk" in result.output
    assert "3 mistakes" in result.output


def test_exactly_one_way_to_name_a_node() -> None:
    assert "got none" in trimtab("reserved", "formula").output
    both = trimtab("reserved", "formula", "--type", "m5.large", "--cpu", "4")
    assert (both.exit_code, has_facts(both.output, "--cpu", "--memory", "--type")) == (2, True)
    assert has_facts(trimtab("reserved", "formula", "--cpu", "4").output, "--memory", "above 0")


def test_a_large_share_is_told() -> None:
    result = trimtab("reserved", "formula", "--cpu", "2", "--memory", "8Gi", "--profile", "openshift")
    assert has_facts(result.output, "larger nodes", "smaller share")


def test_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    file = machines(tmp_path)
    runs = {trimtab("reserved", "formula", "--cluster", file, "-o", "json").stdout for _ in range(2)}
    assert len(runs) == 1
