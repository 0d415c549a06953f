"""The service accounts of the processes, each with exactly the permissions that its work needs.

No account may read Secrets of other namespaces, or create Secrets. `InstalledProcess.conditions` lists the permissions
that a process uses only under a condition; all others are used from the first minute.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from trimtab.cluster.cluster_autoscaler import STATUS_NAME as AUTOSCALER_STATUS
from trimtab.cluster.cluster_autoscaler import split_status_names
from trimtab.cluster.processes import account_name
from trimtab.installation.access_rule import Rule, granted_rules
from trimtab.installation.installed_process import InstalledProcess
from trimtab.installation.names import InstallValues, Manifest, build_manifest

_RBAC = "rbac.authorization.k8s.io/v1"

SCALING = (
    Rule("apps", ("deployments/scale",), ("get", "patch")),
    Rule("autoscaling", ("horizontalpodautoscalers",), ("get", "patch")),
)
"""The rules that are granted in the namespaces in which Deployments may be scaled.

The compactor needs them to give a Deployment more replicas, itself or by its HorizontalPodAutoscaler, and the uninstall
Job needs them to undo that. An admission policy restricts both to the steps of a surge.
"""

RESIZING = (Rule("", ("pods/resize",), ("patch",)),)
"""The rules that the compactor is granted in the whole cluster if the installation resizes running pods."""


def render_accounts(processes: Iterable[InstalledProcess], values: InstallValues) -> Iterator[Manifest]:
    """Yields the service accounts of these processes, then their roles and bindings."""
    for process in processes:
        yield build_manifest("v1", "ServiceAccount", account_name(process.name), values, component=process.name)
    for process in processes:
        yield from render_roles(process, values)


def render_roles(process: InstalledProcess, values: InstallValues) -> Iterator[Manifest]:
    """Yields the roles of the process and their bindings to its account."""
    component, name = process.name, account_name(process.name)
    cluster_rules = _render_rules(process.cluster_rules, values)
    yield build_manifest(_RBAC, "ClusterRole", name, component=component, rules=cluster_rules)
    yield _render_binding("ClusterRole", name, component, values)
    namespace_rules = _render_rules(process.namespace_rules, values)
    yield build_manifest(_RBAC, "Role", name, values, component=component, rules=namespace_rules)
    yield _render_binding("Role", name, component, values)
    if process.may_resize and values.resize:
        yield from render_resize_role(component, values)
    if process.may_scale:
        for namespace in values.scale_namespaces:
            yield from render_scale_role(component, namespace, values)


def render_resize_role(process: str, values: InstallValues) -> Iterator[Manifest]:
    """Yields the role to resize running pods, and its binding to the process's account."""
    name, rules = f"{account_name(process)}-resize", [rule.to_manifest() for rule in RESIZING]
    yield build_manifest(_RBAC, "ClusterRole", name, component=process, rules=rules)
    yield _render_binding("ClusterRole", name, process, values)


def render_scale_role(process: str, namespace: str, values: InstallValues) -> Iterator[Manifest]:
    """Yields the role to scale Deployments of one namespace, and its binding."""
    name, scale_values = f"{account_name(process)}-scale", replace(values, namespace=namespace)
    rules = [rule.to_manifest() for rule in SCALING]
    yield build_manifest(_RBAC, "Role", name, scale_values, component=process, rules=rules)
    binding = _render_binding("Role", name, process, values)
    yield {**binding, "metadata": {**binding["metadata"], "namespace": namespace}}


def _render_rules(rules: Iterable[Rule], values: InstallValues) -> list[Manifest]:
    names = {AUTOSCALER_STATUS: split_status_names(values.autoscaler_status)}
    return [
        replace(rule, names=tuple(own for name in rule.names for own in names.get(name, (name,)))).to_manifest()
        for rule in granted_rules(rules, cert_manager=values.cert_manager)
    ]


def _render_binding(kind: str, name: str, process: str, values: InstallValues) -> Manifest:
    subject = {"kind": "ServiceAccount", "name": account_name(process), "namespace": values.namespace}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    namespaced_values = values if kind == "Role" else None
    return build_manifest(
        _RBAC, f"{kind}Binding", name, namespaced_values, component=process, roleRef=ref, subjects=[subject]
    )
