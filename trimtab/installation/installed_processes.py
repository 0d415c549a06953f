"""All accounts of an installation: those of the processes, and that of the uninstall Job."""

from collections.abc import Iterator

from trimtab.installation.access_rule import Rule
from trimtab.installation.admission_policies import render_write_policies
from trimtab.installation.installed_process import InstalledProcess
from trimtab.installation.names import PROCESSES, InstallValues, Manifest
from trimtab.installation.processes import captures, compactor, metrics_api, recommender, uninstall, watchdog, webhook

INSTALLED_PROCESSES: tuple[InstalledProcess, ...] = tuple(
    module.PROCESS for module in (webhook, watchdog, compactor, recommender, metrics_api, captures, uninstall)
)
ALWAYS_INSTALLED = tuple(process for process in INSTALLED_PROCESSES if process.name in PROCESSES)
"""The accounts that every installation has."""

CLUSTER_RULES: dict[str, tuple[Rule, ...]] = {process.name: process.cluster_rules for process in INSTALLED_PROCESSES}
"""Process → the rules that are granted in the whole cluster."""

NAMESPACE_RULES: dict[str, tuple[Rule, ...]] = {
    process.name: process.namespace_rules for process in INSTALLED_PROCESSES
}
"""Process → the rules that are granted in Trimtab's own namespace."""

CONDITIONAL_PERMISSIONS: dict[tuple[str, str, str], str] = {
    (process.name, verb, resource): condition
    for process in INSTALLED_PROCESSES
    for (verb, resource), condition in process.conditions.items()
}
"""(process, verb, resource) → the condition under which the process uses the permission. A test compares this table
with an API server's audit log."""


def find_installed_process(name: str) -> InstalledProcess:
    """Returns the account of this process. Raises StopIteration if there is none."""
    return next(process for process in INSTALLED_PROCESSES if process.name == name)


def render_account_policies(values: InstallValues) -> Iterator[Manifest]:
    """Yields the policies of each account, and their bindings; the webhook's account has a policy on its caBundle only
    if it writes the caBundle itself."""
    for process in ALWAYS_INSTALLED:
        yield from render_write_policies(process.write_policies, values)
    yield from compactor.render_pool_status_policy()
    yield from compactor.render_order_author_policy()


def render_uninstall_policies(values: InstallValues) -> Iterator[Manifest]:
    """Yields the policies of the account of Helm's uninstall hook, which only the chart installs."""
    yield from render_write_policies(uninstall.PROCESS.write_policies, values)
