"""The permission to lower the priority of node groups: a Role for the ConfigMap of the autoscaler's priority expander.

The Role is in the autoscaler's namespace, often kube-system. The recommender may read and replace this ConfigMap and
read the autoscaler's status, but it may neither create nor delete them. So it changes only a priority map that a person
wrote with `trimtab machines priorities --apply`.
"""

from collections.abc import Iterator
from dataclasses import replace

from trimtab.cluster.cluster_autoscaler import split_status_names
from trimtab.cluster.processes import account_name
from trimtab.installation.names import InstallValues, Manifest, build_manifest
from trimtab.machines.expander_map import MAP_NAME

_RBAC = "rbac.authorization.k8s.io/v1"
ROLE_NAME = "trimtab-recommender-demotion"


def render_demotion_access(process: str, values: InstallValues) -> Iterator[Manifest]:
    """Yields the Role and its binding in the autoscaler's namespace; nothing if the installation does not lower the
    priority of node groups."""
    if not values.demote_groups:
        return
    there = replace(values, namespace=values.autoscaler_namespace)
    rules = [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "update"], "resourceNames": [MAP_NAME]},
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "verbs": ["get"],
            "resourceNames": [*split_status_names(values.autoscaler_status)],
        },
    ]
    yield build_manifest(_RBAC, "Role", ROLE_NAME, there, component=process, rules=rules)
    account = {"kind": "ServiceAccount", "name": account_name(process), "namespace": values.namespace}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ROLE_NAME}
    yield build_manifest(_RBAC, "RoleBinding", ROLE_NAME, there, component=process, roleRef=ref, subjects=[account])
