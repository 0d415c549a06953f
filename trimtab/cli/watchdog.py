"""The command line of `trimtab watchdog`: it runs the process that audits running pods and stops harmful policies."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import click

from trimtab.cli.options import takes
from trimtab.cli.run_process import report_start_faults, run_process
from trimtab.cluster.overhead_writer import OverheadWriter
from trimtab.inputs.flags import KUBECONFIG, LISTEN, OVERHEAD, POLICIES, READY_FILE
from trimtab.inputs.option import option
from trimtab.runtime.files import InvalidPolicyFiles, UnreadableFiles
from trimtab.watchdog.process import run
from trimtab.watchdog.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchdogOptions:
    """The options of `trimtab watchdog`."""

    listen: Annotated[str | None, LISTEN.with_help("The address for metrics and health. Default: 0.0.0.0:9090.")] = None
    policies: Annotated[tuple[Path, ...], POLICIES.with_help("Policies. Default: the cluster's PodPolicies.")] = ()
    overhead: Annotated[OverheadWriter | None, OVERHEAD] = None
    harm_brake: Annotated[
        Literal["apply", "report", "off"] | None,
        option("--harm-brake", help="What the watchdog does about a policy that harms pods."),
    ] = None
    kubeconfig: Annotated[
        Path | None, KUBECONFIG.with_help("A kubeconfig file. Default: the pod's account, or your kubeconfig.")
    ] = None
    ready_file: Annotated[Path | None, READY_FILE] = None


@click.command(Settings.process)
@takes(WatchdogOptions)
def verb(options: WatchdogOptions) -> None:
    """Check running pods until a signal: pods that lack a change, stale overhead, harm after a policy.

    The watchdog never changes a pod. One replica works; the others wait for its Lease. You can also set every option in
    the environment, such as TRIMTAB_WATCHDOG_LISTEN; `trimtab explain TRIMTAB_WATCHDOG_LISTEN` explains one.
    """
    with report_start_faults(listed=(UnreadableFiles, InvalidPolicyFiles)):
        run_process(Settings, options, run)
