"""The command line of `trimtab metrics-api`: it runs one replica; its subcommands read files."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

import certs
from trimtab.admission.apiserver.validate_names import subdomain_errors
from trimtab.cli.main import EXIT_FOUND, EXIT_USAGE, SuggestingGroup
from trimtab.cli.output import format_manifests
from trimtab.cli.print_text import print_document, print_text
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import format_count
from trimtab.cluster.quantity import NANO_PER_UNIT, is_quantity, parse
from trimtab.cluster.reason import NotYet
from trimtab.inputs.command_faults import RuntimeFailure, UsageError
from trimtab.inputs.load_history import read_csv_history, read_prometheus_history
from trimtab.metricsapi.hpa_proposal import HpaProposal, LoadPoint, ProposalTerms, propose_hpa, render_hpa
from trimtab.metricsapi.process import run
from trimtab.metricsapi.rule_inputs import find_rule_mistakes
from trimtab.metricsapi.rules import is_metric_name, is_namespace_name
from trimtab.metricsapi.settings import Settings
from trimtab.runtime import environment, log
from trimtab.runtime.files import MissingKeyPair, RuntimeFault
from trimtab.usage.errors import UsageFault


@click.group("metrics-api", cls=SuggestingGroup, invoke_without_command=True)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="The address to serve on. Default: 0.0.0.0:8443; with port 0 the system chooses a free port.",
)
@click.option(
    "--rules",
    "rules_file",
    type=click.Path(path_type=Path),
    help="A file with the rules of the metrics. Default: the ConfigMap trimtab-metrics.",
)
@click.option("--certs", "certs_folder", type=click.Path(path_type=Path), help="The folder with tls.crt and tls.key.")
@click.option("--prometheus", "prometheus_url", metavar="URL", help="The Prometheus for rules with `from: query`.")
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="A kubeconfig file. Default: the pod's account, or your kubeconfig.",
)
@click.option(
    "--ready-file",
    type=click.Path(path_type=Path),
    help="A file that the process writes as soon as it serves requests.",
)
@click.pass_context
def verb(context: click.Context, /, listen: str | None, **options: Any) -> None:
    """Serve custom metrics of pods (custom.metrics.k8s.io) until a signal, so that an HPA scales by request rate.

    API servers query the metrics that rules define; every replica collects and serves all of them. Nothing changes in
    the cluster. You can also set every option in the environment, such as TRIMTAB_METRICS_API_LISTEN; `trimtab explain
    TRIMTAB_METRICS_API_LISTEN` explains one.
    """
    if context.invoked_subcommand is not None:
        return
    try:
        settings = environment.read_with_options(os.environ, Settings, listen, options)
        if settings.rules_file is not None:
            _check_rules(settings.rules_file)
        run(settings, log.build_logger(settings.log_level, settings.log_format))
    except MissingKeyPair as error:
        raise RuntimeFailure(str(error)) from None
    except (RuntimeFault, ValueError) as error:
        print_text(str(error), err=True)
        sys.exit(EXIT_USAGE)
    except certs.CertsError as error:
        print_text(f"{error}\nIssue a pair with: trimtab certs issue", err=True)
        sys.exit(EXIT_USAGE)


@verb.command("check")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
def check_rules(files: tuple[Path, ...]) -> None:
    """Check files of rules, and print every mistake with its line. Exits with 2 if there is one."""
    for file in files:
        _check_rules(file)
        print_text(f"{file}: valid")


def _check_rules(file: Path) -> None:
    try:
        mistakes = find_rule_mistakes(file)
    except (OSError, UnicodeError) as error:
        mistakes = (ConfigError(file=str(file), expected="a file of rules", got=str(error)),)
    if mistakes:
        raise UsageError(mistakes)


@verb.command("propose-hpa")
@click.argument("deployment")
@click.option("-n", "--namespace", required=True, help="The namespace of the Deployment.")
@click.option("--metric", required=True, help="The name of the metric, which is the name of a rule.")
@click.option("--cpu-request", required=True, metavar="QUANTITY", help="The cpu request of one pod, such as 500m.")
@click.option(
    "--utilization",
    type=click.IntRange(10, 95),
    default=70,
    show_default=True,
    help="The usage that a pod should have, in percent of its cpu request.",
)
@click.option(
    "--history", type=click.Path(path_type=Path), help="A CSV file with the columns time, pod, rate and cores."
)
@click.option("--prometheus", metavar="URL", help="Read the history from this Prometheus instead of a file.")
@click.option(
    "--rate-query", metavar="PROMQL", help="With --prometheus: the query for the requests per second of each pod."
)
@click.option("--cpu-query", metavar="PROMQL", help="With --prometheus: the query for the cores of each pod.")
@click.option(
    "--days",
    type=click.IntRange(1, 30),
    default=7,
    show_default=True,
    help="With --prometheus: the number of days of history.",
)
def print_hpa(
    deployment: str,
    namespace: str,
    metric: str,
    cpu_request: str,
    utilization: int,
    history: Path | None,
    prometheus: str | None,
    rate_query: str | None,
    cpu_query: str | None,
    days: int,
) -> None:
    """Print an HPA for DEPLOYMENT, with a threshold computed from history: requests per core.

    The target is an AverageValue, so it does not depend on the cpu requests, which a VPA changes. Exits with 1 if the
    history does not suffice, and says what is missing.
    """
    _check_names(deployment, namespace, metric)
    _check_sources(cpu_request, history, prometheus, rate_query, cpu_query)
    terms = ProposalTerms(
        namespace=namespace, deployment=deployment, metric=metric,
        cpu_request=parse(cpu_request) / NANO_PER_UNIT, utilization=utilization / 100,
    )  # fmt: skip
    proposal = propose_hpa(_read_history(history, prometheus, rate_query or "", cpu_query or "", days), terms)
    if isinstance(proposal, NotYet):
        print_text(f"{proposal}\n{proposal.reason.code.todo}", err=True)
        sys.exit(EXIT_FOUND)
    print_text(_describe_proposal(proposal))
    print_document(format_manifests([render_hpa(proposal, terms)]))


def _check_names(deployment: str, namespace: str, metric: str) -> None:
    """Raises an error if the API server would reject an HPA with these names."""
    mistakes = [
        ConfigError(file="command line", expected=f"{place}: a name that the API server accepts", got=name)
        for place, name, is_valid in (
            ("DEPLOYMENT", deployment, not any(subdomain_errors("metadata.name", deployment))),
            ("--namespace", namespace, is_namespace_name(namespace)),
            ("--metric", metric, is_metric_name(metric)),
        )
        if not is_valid
    ]  # fmt: skip
    if mistakes:
        raise UsageError(mistakes)


def _check_sources(
    cpu_request: str, history: Path | None, prometheus: str | None, rate_query: str | None, cpu_query: str | None
) -> None:
    mistakes = []
    if not is_quantity(cpu_request):
        mistakes.append(("--cpu-request: a quantity such as 500m", cpu_request))
    if (history is None) == (prometheus is None):
        mistakes.append(("--history or --prometheus", "both" if history else "neither"))
    if prometheus and not (rate_query and cpu_query):
        mistakes.append(("--rate-query and --cpu-query", "--prometheus without --rate-query and --cpu-query"))
    if mistakes:
        raise UsageError([ConfigError(file="command line", expected=expected, got=got) for expected, got in mistakes])


def _read_history(
    history: Path | None, prometheus: str | None, rate_query: str, cpu_query: str, days: int
) -> list[LoadPoint]:
    try:
        if history is not None:
            return read_csv_history(history)
        assert prometheus is not None
        return read_prometheus_history(prometheus, rate_query, cpu_query, days)
    except UsageFault as error:
        raise RuntimeFailure(str(error)) from None
    except OSError as error:
        raise UsageError([ConfigError(file=str(history), expected="a CSV file", got=str(error))]) from None


def _describe_proposal(proposal: HpaProposal) -> str:
    return (
        f"# A core serves {proposal.requests_per_core:.4g} requests per second; a pod without load uses "
        f"{proposal.base_cores:.3g} cores\n# (correlation {proposal.correlation:.2f}, "
        f"{format_count(proposal.points, 'point')})"
    )
