"""The command line of `trimtab recommender`: it runs the process that collects usage and publishes recommendations."""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import click

from trimtab.cli.main import EXIT_FAILED
from trimtab.cli.options import takes
from trimtab.cli.run_process import report_start_faults, run_process
from trimtab.inputs.flags import KUBECONFIG, LISTEN, ONCE, PROMETHEUS, READY_FILE
from trimtab.recommender.process import run
from trimtab.recommender.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommenderOptions:
    """The options of `trimtab recommender` that replace its settings."""

    listen: Annotated[
        str | None, LISTEN.with_help("The address that serves metrics, health and /missing. Default: 0.0.0.0:9090.")
    ] = None
    prometheus_url: Annotated[
        str | None, PROMETHEUS.with_help("The URL of Prometheus. Default: the metrics API (metrics-server).")
    ] = None
    kubeconfig: Annotated[
        Path | None, KUBECONFIG.with_help("A kubeconfig file. Default: the pod's account, or your kubeconfig.")
    ] = None
    ready_file: Annotated[Path | None, READY_FILE] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommenderVerbOptions:
    """The options of `trimtab recommender`."""

    once: Annotated[bool, ONCE.with_help("Run one round and exit. Use this option for a CronJob.")] = False
    process: RecommenderOptions


@click.command(Settings.process)
@takes(RecommenderVerbOptions)
def verb(options: RecommenderVerbOptions) -> None:
    """Collect usage until a signal, and publish P5 to P95 of every container for the webhook.

    The recommender changes no pod and no workload. One replica works; the others wait for its Lease. You can also set
    every option in the environment, such as TRIMTAB_RECOMMENDER_LISTEN; `trimtab explain TRIMTAB_RECOMMENDER_LISTEN`
    explains one.
    """
    with report_start_faults():
        is_ok = run_process(Settings, options.process, partial(run, once=options.once))
    sys.exit(0 if is_ok else EXIT_FAILED)
