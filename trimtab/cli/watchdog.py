"""The command line of `trimtab watchdog`: it runs the process that audits running pods and stops harmful policies."""

import os
import sys
from pathlib import Path

import click

from trimtab.cli.main import EXIT_USAGE
from trimtab.cli.print_text import print_text
from trimtab.inputs.command_faults import UsageError
from trimtab.runtime import environment, log
from trimtab.runtime.files import RuntimeFault, UnreadableFiles
from trimtab.watchdog.policy_state import InvalidPolicies
from trimtab.watchdog.process import run
from trimtab.watchdog.settings import Settings


@click.command("watchdog")
@click.option("--listen", metavar="HOST:PORT", help="The address for metrics and health. Default: 0.0.0.0:9090.")
@click.option(
    "--policies", multiple=True, type=click.Path(path_type=Path), help="Policies. Default: the cluster's PodPolicies."
)
@click.option("--overhead", type=click.Choice(["server", "webhook"]), help="The component that writes pod overhead.")
@click.option(
    "--harm-brake",
    type=click.Choice(["apply", "report", "off"]),
    help="What the watchdog does about a policy that harms pods.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="A kubeconfig file. Default: the pod's account, or your kubeconfig.",
)
@click.option(
    "--ready-file",
    type=click.Path(path_type=Path),
    help="A file that the process writes as soon as it serves its HTTP pages.",
)
def verb(
    listen: str | None,
    policies: tuple[Path, ...],
    overhead: str | None,
    harm_brake: str | None,
    kubeconfig: Path | None,
    ready_file: Path | None,
) -> None:
    """Check running pods until a signal: pods that lack a change, stale overhead, harm after a policy.

    The watchdog never changes a pod. One replica works; the others wait for its Lease. You can also set every option in
    the environment, such as TRIMTAB_WATCHDOG_LISTEN; `trimtab explain TRIMTAB_WATCHDOG_LISTEN` explains one.
    """
    options = {
        "policies": policies or None, "overhead": overhead, "harm_brake": harm_brake, "kubeconfig": kubeconfig,
        "ready_file": ready_file,
    }  # fmt: skip
    try:
        settings = environment.read_with_options(os.environ, Settings, listen, options)
        run(settings, log.build_logger(settings.log_level, settings.log_format))
    except (UnreadableFiles, InvalidPolicies) as error:
        raise UsageError(error.mistakes) from None
    except (RuntimeFault, ValueError) as error:
        print_text(str(error), err=True)
        sys.exit(EXIT_USAGE)
