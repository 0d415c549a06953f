"""The permission to recommend for VPAs that name Trimtab: a ClusterRole to watch VPAs and to patch their status.

RBAC cannot restrict it to VPAs that name Trimtab. The account's policy does that: it permits a change of the status
alone, and only of a VPA whose only recommender is Trimtab.
"""

from collections.abc import Iterator

from trimtab.cluster.processes import account_name
from trimtab.cluster.recommendation import VPA_RECOMMENDER_NAME
from trimtab.installation.access_rule import WATCH, Rule
from trimtab.installation.names import InstallValues, Manifest, build_manifest
from trimtab.installation.write_policy import WriteCondition, WritePolicy

_RBAC = "rbac.authorization.k8s.io/v1"
_GROUP, _PLURAL = "autoscaling.k8s.io", "verticalpodautoscalers"
ROLE_NAME = "trimtab-recommender-vpa-status"
RULES = (Rule(_GROUP, (_PLURAL,), WATCH), Rule(_GROUP, (f"{_PLURAL}/status",), ("patch",)))
"""The rules that the recommender is granted in the whole cluster if it recommends for VPAs."""


def render_vpa_status_access(process: str, values: InstallValues) -> Iterator[Manifest]:
    """Yields the ClusterRole and its binding; nothing if the installation does not recommend for VPAs."""
    if not values.writes_vpa_status:
        return
    rules = [rule.to_manifest() for rule in RULES]
    yield build_manifest(_RBAC, "ClusterRole", ROLE_NAME, component=process, rules=rules)
    account = {"kind": "ServiceAccount", "name": account_name(process), "namespace": values.namespace}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE_NAME}
    yield build_manifest(_RBAC, "ClusterRoleBinding", ROLE_NAME, component=process, roleRef=ref, subjects=[account])


def restrict_vpa_status(process: str) -> WritePolicy:
    """Returns the policy for VPAs: the status of those that name Trimtab and no other recommender, and no other
    field."""
    names = "dyn(oldObject).?spec.?recommenders.orValue([])"
    return WritePolicy(
        process=process,
        subject="vpa-status",
        group=_GROUP,
        kinds=(_PLURAL,),
        may_change=(("status",),),
        what="write the status of a VPA",
        conditions=(
            WriteCondition(
                f"size({names}) == 1 && {names}[0].name == '{VPA_RECOMMENDER_NAME}'",
                f"this account may only write to a VPA whose only recommender is {VPA_RECOMMENDER_NAME}",
            ),
        ),
    )
