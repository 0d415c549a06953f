"""The admission policies that `doctor` expects in the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimtab.diagnosis.observed import DeploymentState
from trimtab.runtime.environment import variable_name

if TYPE_CHECKING:
    from trimtab.installation.names import Manifest


def expected_account_policies(
    namespace: str, deployment: DeploymentState | None, *, is_injected: bool
) -> list[Manifest]:
    """Returns the admission policies that this version installs, and their bindings; those of the metrics API only if
    it is installed. `is_injected`: whether cert-manager writes the caBundle of the webhook."""
    from trimtab.installation.admission_policies import render_write_policies
    from trimtab.installation.installed_processes import render_account_policies
    from trimtab.installation.names import InstallValues
    from trimtab.installation.processes.metrics_api import PROCESS

    policies = list(render_account_policies(InstallValues(namespace=namespace, cert_manager=is_injected)))
    if deployment is not None:
        values = InstallValues(namespace=namespace, cert_manager=has_injected_certificate(deployment))
        policies += render_write_policies(PROCESS.write_policies, values)
    return policies


def has_injected_certificate(deployment: DeploymentState) -> bool:
    """Returns whether cert-manager issues the certificate of the metrics API. A setting says so, because its APIService
    has a caBundle of its own."""
    from trimtab.installation.processes.metrics_api import PROCESS

    return not deployment.settings.get(variable_name(PROCESS.name, "certs_secret"))
