"""All of it, in the order it is applied: what others lean on first, what makes API servers call us last."""

from trimtab.cli.install.admission_policies import account_policies, calling
from trimtab.cli.install.deployments import guards, serving, working
from trimtab.cli.install.names import InstallValues, Manifest, labels
from trimtab.cli.install.rbac import accounts
from trimtab.policy.schema import crd

KEPT = ("Namespace", "CustomResourceDefinition")
"""Left when the rest is removed, unless asked for: with them go policies, pools and everything others put there."""


def manifests(values: InstallValues) -> tuple[Manifest, ...]:
    """In the order of application; removed in reverse."""
    return (
        namespace(values), crd(), *accounts(values), *account_policies(values), *guards(values), *serving(values),
        *working(values), *calling(values),
    )  # fmt: skip


def namespace(values: InstallValues) -> Manifest:
    restricted = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    meta = {"name": values.namespace, "labels": {**labels(), **restricted}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
