"""Which replicas of a workload lead, and whether their use differs so much that one request suits neither.

Nothing in a pod template tells replicas apart. What does is a label that an operator gives the pod that leads at
present, or the ordinal in a StatefulSet or in a group of a LeaderWorkerSet.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from trimtab.cluster.api.meta import Labels
from trimtab.cluster.usage_rule import UsageRule
from trimtab.sizing.request import compute_amount
from trimtab.sizing.statistics import UsageStatistics

LEADING = frozenset({"leader", "master", "primary", "active", "true"})
"""The values of role labels that mean that the pod leads."""
ROLE_LABELS = (
    "cnpg.io/instanceRole",
    "spilo-role",
    "postgres-operator.crunchydata.com/role",
    "stackgres.io/role",
    "kubedb.com/role",
    "mysql.oracle.com/cluster-role",
    "k8s.mariadb.com/role",
    "redis-role",
    "vault-active",
    "openbao-active",
    "role",
)
"""Labels that operators of databases and other software set on the pod that leads, and on the others."""
ORDINAL_LABELS = ("leaderworkerset.sigs.k8s.io/worker-index", "apps.kubernetes.io/pod-index")
"""Labels with the ordinal of a pod. In a group of a LeaderWorkerSet, ordinal 0 is the leader."""
ORDERED_KINDS = ("StatefulSet", "LeaderWorkerSet")
MIN_RATIO = 1.5
"""How many times as much one side must need for a finding."""
MIN_DIFFERENCE = {"cpu": 0.1, "memory": float(128 << 20)}
"""Resource → the least difference for a finding, in cores or bytes."""


class ReplicaRole(NamedTuple):
    """Whether a pod leads, and what says so."""

    is_leader: bool
    label: str
    """The label that tells pods apart: a role, or an ordinal."""
    value: str


@dataclass(frozen=True, slots=True)
class RoleAmounts:
    """What a leader and another replica need by the same rule, in cores or bytes."""

    leader: float
    other: float


def find_role(labels: Labels, name: str, kind: str) -> ReplicaRole | None:
    """Returns the role of a pod of a workload of this kind; None if neither a label nor an ordinal tells it."""
    for label in ROLE_LABELS:
        if value := labels.get(label):
            return ReplicaRole(value.lower() in LEADING, label, value)
    if kind not in ORDERED_KINDS:
        return None
    for label in ORDINAL_LABELS:
        if (value := labels.get(label, "")).isdecimal():
            return ReplicaRole(int(value) == 0, label, value)
    # Before Kubernetes 1.28, a StatefulSet gave its pods no label with the ordinal.
    ordinal = name.rpartition("-")[2]
    return ReplicaRole(int(ordinal) == 0, ORDINAL_LABELS[-1], ordinal) if ordinal.isdecimal() else None


def compare_roles(resource: str, leader: object, other: object, rule: UsageRule) -> RoleAmounts | None:
    """Returns what both sides need, if their needs differ enough and the usage of both is known long enough.

    `leader` and `other`: UsageStatistics, or NotYet, which is never enough."""
    if not isinstance(leader, UsageStatistics) or not isinstance(other, UsageStatistics):
        return None
    amounts = RoleAmounts(compute_amount(rule, leader), compute_amount(rule, other))
    low, high = sorted((amounts.leader, amounts.other))
    is_different = high - low >= MIN_DIFFERENCE[resource] and high >= MIN_RATIO * low
    return amounts if is_different else None


def split_by_role(roles: Mapping[str, ReplicaRole]) -> Mapping[str, ReplicaRole]:
    """Returns the roles (pod → role) of one workload, if it has leaders as well as others, and one label tells all of
    them apart; otherwise an empty mapping."""
    labels, sides = {role.label for role in roles.values()}, {role.is_leader for role in roles.values()}
    return roles if len(labels) == 1 and len(sides) == 2 else {}
