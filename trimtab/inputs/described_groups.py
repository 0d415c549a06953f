"""Node groups without a node, as the user describes them: machine type, zone, labels.

The size of the node comes from the table of machine types and the reservation formula of its cloud, as in the ranking
of machine types. Its labels are only those that the user names, and those that every node of the type has.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from trimtab.cluster.api.meta import Labels
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.node import ARCH_LABELS, INSTANCE_TYPE_LABEL, OS_LABELS, REGION_LABEL, ZONE_LABEL, NodeInfo
from trimtab.machines.machine_types import MachineType, machine_types
from trimtab.machines.prices import PriceFile
from trimtab.reservations.formula import NodeSize, calculate_reservations
from trimtab.reservations.read_profile import shipped_profiles
from trimtab.sizing.ranking.candidates import DEFAULT_MAX_PODS, DEFAULT_PROFILES, OTHER_PROFILE

_EXPECTED = "NAME=TYPE,LABEL=VALUE,…, such as small=m5.large,zone=eu-west-1a,nodepool=small"
_MIB = 1 << 20


def read_described_groups(
    texts: Iterable[str], inventory: Inventory, prices: PriceFile
) -> tuple[dict[str, NodeInfo], list[ConfigError]]:
    """Returns node group → its next node, and the mistakes in the texts."""
    nodes: dict[str, NodeInfo] = {}
    mistakes: list[ConfigError] = []
    for text in texts:
        name, _, rest = text.partition("=")
        type_name, *words = rest.split(",")
        pairs = [word.partition("=") for word in words]
        labels = {ZONE_LABEL if key == "zone" else key: value for key, _, value in pairs}
        kind = machine_types().get(type_name)
        if not name or not rest or not all(key and value for key, _, value in pairs):
            mistakes.append(ConfigError(file="--group", expected=_EXPECTED, got=text))
        elif kind is None:
            expected = "a machine type of AWS, Azure or Google Cloud"
            mistakes.append(ConfigError(file="--group", expected=expected, got=type_name or "none"))
        else:
            node = _describe_node(kind, labels, inventory)
            nodes[name] = replace(node, price=prices.price_of(node))
    return nodes, mistakes


def _describe_node(kind: MachineType, labels: Labels, inventory: Inventory) -> NodeInfo:
    profile = shipped_profiles()[DEFAULT_PROFILES.get(kind.cloud, OTHER_PROFILE)]
    max_pods = DEFAULT_MAX_PODS if kind.max_pods is None else min(DEFAULT_MAX_PODS, kind.max_pods)
    size = NodeSize(
        millicores=round(kind.cores * 1000),
        memory_bytes=kind.memory_mib * _MIB,
        max_pods=max_pods,
        lost_bytes=round((kind.memory_mib - min(kind.kernel_mib, kind.memory_mib)) * _MIB),
        architecture=kind.arch,
    )
    reserved = calculate_reservations(profile, size)
    regions = {node.labels[REGION_LABEL] for node in inventory.machines if REGION_LABEL in node.labels}
    amounts = {
        "cpu": int(reserved.cpu.allocatable),
        "memory": int(reserved.memory.allocatable),
        "pods": max_pods,
    }
    return NodeInfo(
        name="",
        labels={
            INSTANCE_TYPE_LABEL: kind.name,
            ARCH_LABELS[0]: kind.arch,
            OS_LABELS[0]: "linux",
            **({REGION_LABEL: next(iter(regions))} if len(regions) == 1 else {}),
            **labels,
        },
        annotations={},
        taints=(),
        is_cordoned=False,
        allocatable=amounts,
        is_ready=True,
        created=None,
        provider_id="",
        capacity={"cpu": size.millicores, "memory": size.memory_bytes, "pods": max_pods},
        attachable_volumes=_limit_volumes(kind, inventory),
        operating_system="linux",
        architecture=kind.arch,
    )


def _limit_volumes(kind: MachineType, inventory: Inventory) -> Mapping[str, int]:
    drivers = {driver for node in inventory.machines for driver in node.attachable_volumes}
    return {} if kind.max_volumes is None else dict.fromkeys(sorted(drivers), kind.max_volumes)
