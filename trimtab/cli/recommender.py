"""The command line of `trimtab recommender`: it runs the process that collects usage and publishes recommendations."""

import os
import sys
from pathlib import Path

import click

from trimtab.cli.main import EXIT_FAILED, EXIT_USAGE
from trimtab.cli.print_text import print_text
from trimtab.recommender.process import run
from trimtab.recommender.settings import Settings
from trimtab.runtime import environment, log
from trimtab.runtime.files import RuntimeFault


@click.command("recommender")
@click.option("--once", is_flag=True, help="Run one round and exit. Use this option for a CronJob.")
@click.option(
    "--listen", metavar="HOST:PORT", help="The address that serves metrics, health and /missing. Default: 0.0.0.0:9090."
)
@click.option("--prometheus", metavar="URL", help="The URL of Prometheus. Default: the metrics API (metrics-server).")
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
    once: bool, listen: str | None, prometheus: str | None, kubeconfig: Path | None, ready_file: Path | None
) -> None:
    """Collect usage until a signal, and publish P5 to P95 of every container for the webhook.

    The recommender changes no pod and no workload. One replica works; the others wait for its Lease. You can also set
    every option in the environment, such as TRIMTAB_RECOMMENDER_LISTEN; `trimtab explain TRIMTAB_RECOMMENDER_LISTEN`
    explains one.
    """
    options = {"prometheus_url": prometheus, "kubeconfig": kubeconfig, "ready_file": ready_file}
    try:
        settings = environment.read_with_options(os.environ, Settings, listen, options)
        is_ok = run(settings, log.build_logger(settings.log_level, settings.log_format), once=once)
    except (RuntimeFault, ValueError) as error:
        print_text(str(error), err=True)
        sys.exit(EXIT_USAGE)
    sys.exit(0 if is_ok else EXIT_FAILED)
