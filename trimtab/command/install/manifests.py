"""All of it, in the order it is applied: what others lean on first, what makes API servers call us last."""

from trimtab.command.install.calling import calling
from trimtab.command.install.guards import guards
from trimtab.command.install.names import Manifest, labels
from trimtab.command.install.rbac import accounts
from trimtab.command.install.serving import serving
from trimtab.command.install.values import Values
from trimtab.command.install.working import working
from trimtab.policy.schema import crd

KEPT = ("Namespace", "CustomResourceDefinition")
"""Left when the rest is removed, unless asked for: with them go policies, pools and everything others put there."""


def manifests(values: Values) -> tuple[Manifest, ...]:
    """In the order of application; removed in reverse."""
    return (
        namespace(values), crd(), *accounts(values), *guards(values), *serving(values), *working(values),
        *calling(values),
    )  # fmt: skip


def namespace(values: Values) -> Manifest:
    restricted = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    meta = {"name": values.namespace, "labels": {**labels(), **restricted}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
