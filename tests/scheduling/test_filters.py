"""One pod, one node: yes, or the first constraint that says no."""

import pytest

from tests.cluster_of import HOST, ZONE, Item, apart, budget, cluster, node, pod, spread
from trimtab.scheduling.cluster_model import FreeCapacity, build_cluster_model
from trimtab.scheduling.filters import fits_on_node, rejection_reason


def answer(items: list[Item], name: str, target: str, leaving: str = "") -> str:
    """The code of the first reason against, or "fits"; the pod is taken off its node first."""
    world = build_cluster_model(cluster(*items))
    room = FreeCapacity(world)
    number = [p.name for p in world.pods].index(name) if any(p.name == name for p in world.pods) else -1
    kind = world.successor_class_of[number] if number >= 0 else next(k for p, k in world.pending_pods if p.name == name)
    if number >= 0:
        room.uncount_pod(world.class_of[number].member_groups, world.node_of[number])
        room.cordon_node(world.node_of[number])
    reason = rejection_reason(room, kind, world.node_numbers[target])
    assert (reason is None) == fits_on_node(room, kind, world.node_numbers[target])
    return reason.code.name if reason else "fits"


def test_a_pod_fits_where_nothing_is_against_it() -> None:
    assert answer([node("a"), node("b"), pod("x-1", "a")], "x-1", "b") == "fits"


def test_case_51_the_destination_needs_the_label_of_the_pods_node_selector() -> None:
    chosen = {"nodeSelector": {"disk": "fast"}}
    bare, labelled = node("b"), node("b", labels={"disk": "fast"})
    assert answer([node("a"), bare, pod("x-1", "a", spec=chosen)], "x-1", "b") == "node-not-selected"
    assert answer([node("a"), labelled, pod("x-1", "a", spec=chosen)], "x-1", "b") == "fits"


def test_case_52_a_destination_with_cpu_but_too_little_memory_is_none() -> None:
    world = [node("a"), node("b", memory="1Gi"), pod("x-1", "a", memory="2Gi")]
    assert answer(world, "x-1", "b") == "no-room"


def test_case_53_a_taint_keeps_off_who_does_not_tolerate_it() -> None:
    tainted = node("b", taints=[{"key": "team", "value": "x", "effect": "NoSchedule"}])
    tolerant = {"tolerations": [{"key": "team", "operator": "Equal", "value": "x", "effect": "NoSchedule"}]}
    assert answer([node("a"), tainted, pod("x-1", "a")], "x-1", "b") == "taint-not-tolerated"
    assert answer([node("a"), tainted, pod("x-1", "a", spec=tolerant)], "x-1", "b") == "fits"


def test_a_soft_taint_keeps_nobody_off() -> None:
    soft = node("b", taints=[{"key": "team", "effect": "PreferNoSchedule"}])
    assert answer([node("a"), soft, pod("x-1", "a")], "x-1", "b") == "fits"


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        ({"key": "n", "operator": "In", "values": ["5", "6"]}, True),
        ({"key": "n", "operator": "NotIn", "values": ["5"]}, False),
        ({"key": "other", "operator": "NotIn", "values": ["5"]}, True),
        ({"key": "n", "operator": "Exists"}, True),
        ({"key": "other", "operator": "DoesNotExist"}, True),
        ({"key": "n", "operator": "Gt", "values": ["4"]}, True),
        ({"key": "n", "operator": "Lt", "values": ["5"]}, False),
        ({"key": "n", "operator": "Like", "values": ["5"]}, False),
    ],
)
def test_every_operator_of_node_affinity(expression: Item, fits: bool) -> None:
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    spec = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}
    world = [node("a"), node("b", labels={"n": "5"}), pod("x-1", "a", spec=spec)]
    assert (answer(world, "x-1", "b") == "fits") is fits


@pytest.mark.parametrize("value", ["1_0", "99999999999999999999", "x", " 7", "٧", ""])
@pytest.mark.parametrize("operator", ["Gt", "Lt"])
def test_a_label_that_is_no_number_to_the_scheduler_is_neither_greater_nor_less(value: str, operator: str) -> None:
    expression = {"key": "n", "operator": operator, "values": ["5"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    spec = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}
    world = [node("a"), node("b", labels={"n": value}), pod("x-1", "a", spec=spec)]
    assert answer(world, "x-1", "b") == "node-not-selected"


def test_match_fields_choose_a_node_by_name() -> None:
    required = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["c"]}]}]}
    spec = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}
    world = [node("a"), node("b"), node("c"), pod("x-1", "a", spec=spec)]
    assert [answer(world, "x-1", name) for name in "bc"] == ["node-not-selected", "fits"]


def test_an_empty_node_selector_term_chooses_nothing() -> None:
    spec = {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}}
    }
    assert answer([node("a"), node("b"), pod("x-1", "a", spec=spec)], "x-1", "b") == "node-not-selected"


def test_the_scheduler_s_sum_counts_init_containers_and_overhead() -> None:
    init = {"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "3"}}}], "overhead": {"cpu": "500m"}}
    world = [node("a"), node("b", cpu="3400m"), pod("x-1", "a", spec=init)]
    assert answer(world, "x-1", "b") == "no-room"
    assert answer([node("a"), node("b", cpu="3500m"), pod("x-1", "a", spec=init)], "x-1", "b") == "fits"


def test_pod_slots_run_out() -> None:
    world = [node("a"), node("b", pods=1), pod("x-1", "a"), pod("y-1", "b")]
    assert answer(world, "x-1", "b") == "no-room"


def test_case_11_an_extended_resource_the_node_does_not_have() -> None:
    gpu = {"example.com/device": "1"}
    world = [node("a", extra={"example.com/device": "8"}), node("b"), pod("x-1", "a", extra=gpu)]
    assert answer(world, "x-1", "b") == "no-room"


def test_ephemeral_storage_counts() -> None:
    world = [
        node("a"),
        node("b", extra={"ephemeral-storage": "1Gi"}),
        pod("x-1", "a", extra={"ephemeral-storage": "2Gi"}),
    ]
    assert answer(world, "x-1", "b") == "no-room"


def test_host_ports_collide_on_the_same_address_or_on_all() -> None:
    def port(ip: str) -> list[Item]:
        return [{"containerPort": 80, "hostPort": 8080, "hostIP": ip, "protocol": "TCP"}]

    def world(mine: str, theirs: str) -> list[Item]:
        return [node("a"), node("b"), pod("x-1", "a", ports=port(mine)), pod("y-1", "b", ports=port(theirs))]

    assert answer(world("", ""), "x-1", "b") == "host-port-taken"
    assert answer(world("10.0.0.1", "0.0.0.0"), "x-1", "b") == "host-port-taken"
    assert answer(world("10.0.0.1", "10.0.0.2"), "x-1", "b") == "fits"


def test_anti_affinity_holds_both_ways() -> None:
    mine = [node("a"), node("b"), pod("x-1", "a", spec=apart("y")), pod("y-1", "b")]
    theirs = [node("a"), node("b"), pod("x-1", "a"), pod("y-1", "b", spec=apart("x"))]
    assert answer(mine, "x-1", "b") == "anti-affinity"
    assert answer(theirs, "x-1", "b") == "anti-affinity"


def test_anti_affinity_over_zones_speaks_of_all_nodes_of_the_zone() -> None:
    zone = {"labels": {ZONE: "z1"}}
    world = [node("a"), node("b", **zone), node("c", **zone), pod("x-1", "a", spec=apart("y", ZONE)), pod("y-1", "c")]
    assert answer(world, "x-1", "b") == "anti-affinity"


def test_anti_affinity_speaks_of_its_own_namespace_unless_it_selects_others() -> None:
    other = pod("y-1", "b", namespace="other")
    assert answer([node("a"), node("b"), pod("x-1", "a", spec=apart("y")), other], "x-1", "b") == "fits"
    everywhere = apart("y")
    everywhere["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0][
        "namespaceSelector"
    ] = {}
    assert answer([node("a"), node("b"), pod("x-1", "a", spec=everywhere), other], "x-1", "b") == "anti-affinity"


def test_namespaces_selected_by_label_that_are_not_in_the_snapshot_cannot_be_judged() -> None:
    chosen = apart("y")
    term = chosen["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    term["namespaceSelector"] = {"matchLabels": {"team": "a"}}
    assert answer([node("a"), node("b"), pod("x-1", "a", spec=chosen)], "x-1", "b") == "unknown-placement-rule"


def test_namespaces_selected_by_label_cannot_be_judged_while_one_with_pods_is_not_shown() -> None:
    chosen = apart("y")
    term = chosen["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    term["namespaceSelector"] = {"matchLabels": {"team": "a"}}
    shown = {"kind": "Namespace", "metadata": {"name": "default"}}
    items = [node("a"), node("b"), pod("x-1", "a", spec=chosen), shown]
    assert answer(items, "x-1", "b") == "fits"
    assert answer([*items, pod("y-1", "b", namespace="other")], "x-1", "b") == "unknown-placement-rule"


def test_anti_affinity_towards_namespaces_that_are_not_in_the_snapshot_keeps_off_pods_of_any() -> None:
    chosen = apart("x")
    term = chosen["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    term["namespaceSelector"] = {"matchLabels": {"team": "a"}}
    holder = pod("y-1", "b", spec=chosen)
    assert answer([node("a"), node("b"), pod("x-1", "a"), holder], "x-1", "b") == "anti-affinity"


def near(app: str, key: str = HOST) -> Item:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def test_required_affinity_wants_company() -> None:
    world = [node("a"), node("b"), node("c"), pod("x-1", "a", spec=near("y")), pod("y-1", "b")]
    assert [answer(world, "x-1", name) for name in "bc"] == ["fits", "affinity-not-met"]


def test_the_first_of_a_self_loving_kind_may_go_anywhere() -> None:
    world = [node("a"), node("b"), pod("x-1", "a", spec=near("x"))]
    assert answer(world, "x-1", "b") == "fits"


def test_who_is_on_the_way_out_is_no_company_but_others_are_not_the_first_meanwhile() -> None:
    leaving = pod("x-2", "b", deleted="2026-01-02T00:10:00Z")
    world = [node("a"), node("b"), node("c"), pod("x-1", "a", spec=near("x")), leaving]
    assert [answer(world, "x-1", name) for name in "bc"] == ["affinity-not-met", "affinity-not-met"]


NOT_TEAM_A = {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}}
TEAM_A = {"kind": "Namespace", "metadata": {"name": "theirs", "labels": {"team": "a"}}}
OURS = {"kind": "Namespace", "metadata": {"name": "default"}}


def chosen_by(kind: str, app: str) -> Item:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOST, **NOT_TEAM_A}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def test_a_pod_s_own_anti_affinity_by_a_negative_namespace_selector_speaks_of_all_namespaces() -> None:
    """What is written says else; the scheduler does so (1.36), and it has the last word."""
    mine = pod("x-1", "a", spec=chosen_by("podAntiAffinity", "y"))
    assert answer([node("a"), node("b"), TEAM_A, OURS, mine, pod("y-1", "b", namespace="theirs")], "x-1", "b") == (
        "anti-affinity"
    )


def test_another_pod_s_anti_affinity_by_a_negative_namespace_selector_speaks_of_what_is_written() -> None:
    holder = pod("y-1", "b", spec=chosen_by("podAntiAffinity", "x"))
    world = [node("a"), node("b"), TEAM_A, OURS, holder]
    assert answer([*world, pod("x-1", "a", namespace="theirs")], "x-1", "b") == "fits"
    assert answer([*world, pod("x-1", "a")], "x-1", "b") == "anti-affinity"


def test_affinity_by_a_negative_namespace_selector_is_met_by_what_is_written_only() -> None:
    mine = pod("x-1", "a", spec=chosen_by("podAffinity", "y"))
    world = [node("a"), node("b"), TEAM_A, OURS, mine, pod("y-1", "b", namespace="theirs")]
    assert answer(world, "x-1", "b") == "affinity-not-met"


def test_a_pod_of_another_namespace_is_company_enough_not_to_be_the_first() -> None:
    mine = pod("x-1", "a", spec=chosen_by("podAffinity", "x"))
    world = [node("a"), node("b"), TEAM_A, OURS, mine]
    assert answer(world, "x-1", "b") == "fits"
    assert answer([*world, pod("x-2", "b", namespace="theirs")], "x-1", "b") == "affinity-not-met"


def test_spread_counts_the_drained_node_as_a_domain_unless_taints_are_honoured() -> None:
    def world(**more: str) -> list[Item]:
        return [*(node(n) for n in "abc"), *(pod(f"x-{n}", n, spec=spread("x", **more)) for n in "abc")]

    assert answer(world(), "x-a", "b") == "topology-spread"
    assert answer(world(nodeTaintsPolicy="Honor"), "x-a", "b") == "fits"


def test_min_domains_take_the_smallest_count_for_zero() -> None:
    items = [
        node("a"),
        node("b"),
        pod("x-a", "a", spec=spread("x", minDomains=5, nodeTaintsPolicy="Honor")),
        pod("x-b", "b"),
    ]
    assert answer(items, "x-a", "b") == "topology-spread"


def test_spread_over_zones_counts_all_nodes_of_a_zone() -> None:
    nodes = [node("a", labels={ZONE: "1"}), node("b", labels={ZONE: "1"}), node("c", labels={ZONE: "2"})]
    pods = [pod("x-a", "a", spec=spread("x", ZONE)), pod("x-b", "b"), pod("x-c", "c")]
    assert [answer([*nodes, *pods], "x-a", n) for n in "bc"] == ["fits", "fits"]
    more = pod("x-d", "c")
    assert [answer([*nodes, *pods, more], "x-a", n) for n in "bc"] == ["fits", "topology-spread"]


def test_a_node_without_the_key_takes_no_spread_pod() -> None:
    items = [node("a", labels={ZONE: "1"}), node("b"), pod("x-a", "a", spec=spread("x", ZONE))]
    assert answer(items, "x-a", "b") == "topology-spread"


def test_match_label_keys_narrow_the_spread_to_the_pods_own_revision() -> None:
    constraint = spread("x", matchLabelKeys=["rev"])
    items = [
        node("a"),
        node("b"),
        pod("x-a", "a", labels={"rev": "2"}, spec=constraint),
        pod("x-b", "b", labels={"rev": "1"}),
    ]
    assert answer(items, "x-a", "b") == "fits"


def volume(zone: str, mode: str = "ReadWriteOnce") -> list[Item]:
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
    return [
        {
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "default"},
            "spec": {"volumeName": "pv", "accessModes": [mode]},
        },
        {
            "kind": "PersistentVolume",
            "metadata": {"name": "pv"},
            "spec": {
                "csi": {"driver": "disk", "volumeHandle": "1"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
            },
        },
    ]


DATA = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}


def test_a_volume_binds_its_pod_to_its_zone() -> None:
    nodes = [node("a", labels={ZONE: "1"}), node("b", labels={ZONE: "1"}), node("c", labels={ZONE: "2"})]
    items = [*nodes, pod("x-1", "a", spec=DATA), *volume("1")]
    assert [answer(items, "x-1", n) for n in "bc"] == ["fits", "volume-elsewhere"]


def test_a_claim_that_is_not_in_the_snapshot_cannot_be_judged() -> None:
    assert answer([node("a"), node("b"), pod("x-1", "a", spec=DATA)], "x-1", "b") == "unknown-placement-rule"


def test_attach_limits_count_volumes_of_the_driver() -> None:
    full = {
        "kind": "CSINode",
        "metadata": {"name": "b"},
        "spec": {"drivers": [{"name": "disk", "allocatable": {"count": 0}}]},
    }
    nodes = [node("a", labels={ZONE: "1"}), node("b", labels={ZONE: "1"})]
    assert answer([*nodes, pod("x-1", "a", spec=DATA), *volume("1"), full], "x-1", "b") == "no-room"


def test_read_write_once_pod_allows_one_user() -> None:
    nodes = [node("a", labels={ZONE: "1"}), node("b", labels={ZONE: "1"})]
    items = [*nodes, pod("x-1", "a", spec=DATA), pod("y-1", "b", spec=DATA), *volume("1", "ReadWriteOncePod")]
    assert answer(items, "x-1", "b") == "volume-in-use"


@pytest.mark.parametrize(
    ("mode", "more", "said"),
    [
        ("ReadWriteOnce", {}, "volume-in-use"),
        ("ReadWriteOnce", {"phase": "Succeeded"}, "fits"),
        ("ReadWriteMany", {}, "fits"),
    ],
)
def test_pods_that_share_a_volume_which_one_node_attaches_are_not_torn_apart(mode: str, more: Item, said: str) -> None:
    nodes = [node("a", labels={ZONE: "1"}), node("b", labels={ZONE: "1"})]
    items = [*nodes, pod("x-1", "a", spec=DATA), pod("y-1", "a", spec=DATA, **more), *volume("1", mode)]
    assert answer(items, "x-1", "b") == said


@pytest.mark.parametrize("spec", [{"schedulerName": "other"}, {"resourceClaims": [{"name": "gpu"}]}])
def test_what_cannot_be_judged_does_not_fit(spec: Item) -> None:
    assert answer([node("a"), node("b"), pod("x-1", "a", spec=spec)], "x-1", "b") == "unknown-placement-rule"


@pytest.mark.parametrize("more", [{"cordoned": True}, {"ready": False}])
def test_a_cordoned_or_unready_node_takes_no_pods(more: Item) -> None:
    assert answer([node("a"), node("b", **more), pod("x-1", "a")], "x-1", "b") == "node-takes-no-pods"


def test_budgets_are_no_matter_of_fit() -> None:
    assert answer([node("a"), node("b"), pod("x-1", "a"), budget("x", 0)], "x-1", "b") == "fits"


@pytest.mark.parametrize(
    ("resource", "name"), [("example.com/gpu", "example.com/gpu"), ("deviceclass.resource.kubernetes.io/gpus", "")]
)
def test_a_resource_that_a_device_class_gives_is_not_said_to_be_used_up(resource: str, name: str) -> None:
    gives = {"kind": "DeviceClass", "metadata": {"name": "gpus"}, "spec": {"extendedResourceName": name}}
    asks = pod("x-1", "a", extra={resource: "1"})
    assert answer([node("a"), node("b"), gives, asks], "x-1", "b") == "unknown-placement-rule"


def test_a_resource_that_a_device_plugin_counts_is_counted_also_beside_a_device_class() -> None:
    gives = {"kind": "DeviceClass", "metadata": {"name": "gpus"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    one = node("b")
    one["status"]["allocatable"]["example.com/gpu"] = "1"
    uses = [pod(f"y-{number}", "b", extra={"example.com/gpu": "1"}) for number in range(1)]
    assert answer([node("a"), one, gives, *uses, pod("x-1", "a", extra={"example.com/gpu": "1"})], "x-1", "b") == (
        "no-room"
    )
