"""Which of the autoscaler's node groups is this node of?

A group's name is the cloud's: an instance group's address (GCE), a scale set (Azure), an autoscaling group (AWS), a
MachineDeployment (Cluster API). A node tells its own by an address that holds that name, or by a label or annotation
that says it. Where neither does, or several groups could be meant, it is not known, and nobody guesses.
"""

import re
from collections.abc import Sequence

from trimtab.cluster.autoscaler import Group
from trimtab.cluster.node import Node

EKS = "eks.amazonaws.com/nodegroup"
"""EKS names the autoscaling group of a managed node group eks-NAME-UUID."""
MACHINE = r"-[a-z0-9]{4}"
"""What GCE appends to the base name of an instance group for each instance."""


def group_of(node: Node, groups: Sequence[Group]) -> Group | None:
    """The one group that the node tells; None where that cannot be told."""
    found = [group for group in groups if _tells(node, _short(group.name))]
    if len(found) > 1:
        found = [group for group in found if node.zone and node.zone in group.name.split("/")]
    return found[0] if len(found) == 1 else None


def _short(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2].lower()


def _tells(node: Node, name: str) -> bool:
    if not name:
        return False
    machine = re.compile(re.escape(name.removesuffix("-grp")) + MACHINE)
    address = node.provider_id.lower().split("/")
    if name in address or any(machine.fullmatch(part) for part in address):
        return True
    eks = node.labels.get(EKS, "").lower()
    if eks and re.fullmatch(rf"eks-{re.escape(eks)}-[0-9a-f-]{{36}}", name):
        return True
    return name in (_short(value) for value in (*node.labels.values(), *node.annotations.values()))
