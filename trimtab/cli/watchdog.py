"""The command line of `trimtab watchdog`: it runs the process that audits running pods and stops harmful policies."""

import os
import sys
from pathlib import Path

import click

from trimtab.cli.main import EXIT_USAGE, UsageError
from trimtab.runtime import environment, log
from trimtab.runtime.files import RuntimeFault, UnreadableFiles
from trimtab.watchdog.policy_state import InvalidPolicies
from trimtab.watchdog.process import run
from trimtab.watchdog.settings import Settings


@click.command("watchdog")
@click.option("--listen", metavar="HOST:PORT", help="Metrics and health; default 0.0.0.0:9090.")
@click.option("--policies", multiple=True, type=click.Path(path_type=Path), help="Default: the cluster's PodPolicies.")
@click.option("--overhead", type=click.Choice(["server", "webhook"]), help="Who writes pod overhead.")
@click.option("--harm-brake", type=click.Choice(["apply", "report", "off"]), help="What becomes of a harmful policy.")
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Default: the pod's account, else your own.")
@click.option("--ready-file", type=click.Path(path_type=Path), help="Written once the pages are served.")
def verb(
    listen: str | None,
    policies: tuple[Path, ...],
    overhead: str | None,
    harm_brake: str | None,
    kubeconfig: Path | None,
    ready_file: Path | None,
) -> None:
    """Watch running pods until a signal: what came through unpatched, whose overhead is stale, what a policy harms.

    It never touches a pod. Of several replicas one works, by a Lease. Every option can be set in the environment too,
    as TRIMTAB_WATCHDOG_LISTEN and so on; docs/reference/settings.md has all of them.
    """
    options = {
        "policies": policies or None, "overhead": overhead, "harm_brake": harm_brake, "kubeconfig": kubeconfig,
        "ready_file": ready_file,
    }  # fmt: skip
    try:
        settings = environment.read_with_options(os.environ, Settings, listen, options)
        run(settings, log.build(settings.log_level, settings.log_format))
    except (UnreadableFiles, InvalidPolicies) as error:
        raise UsageError(error.mistakes) from None
    except (RuntimeFault, ValueError) as error:
        click.echo(str(error), err=True)
        sys.exit(EXIT_USAGE)
