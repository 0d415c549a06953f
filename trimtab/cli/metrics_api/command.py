"""The command line of `trimtab metrics-api`: it runs one replica; its subcommands read files."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

import certs
from trimtab.admission.apiserver.validate_names import subdomain_errors
from trimtab.cli.main import EXIT_FOUND, SuggestingGroup
from trimtab.cli.options import takes
from trimtab.cli.output import format_manifests
from trimtab.cli.print_text import print_document, print_text
from trimtab.cli.run_process import ISSUE_PAIR, report_start_faults, run_process
from trimtab.cli.shared_options import check_maximum
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import format_count
from trimtab.cluster.quantity import NANO_PER_UNIT, is_quantity, parse
from trimtab.cluster.reason import NotYet
from trimtab.inputs.command_faults import RuntimeFailure, UsageError
from trimtab.inputs.flags import CERTS, DAYS, KUBECONFIG, LISTEN, NAMESPACE, PROMETHEUS, READY_FILE
from trimtab.inputs.load_history import read_csv_history, read_prometheus_history
from trimtab.inputs.option import Argument, file_option, option, quantity_option
from trimtab.metricsapi.hpa_proposal import HpaProposal, LoadPoint, ProposalTerms, propose_hpa, render_hpa
from trimtab.metricsapi.process import run
from trimtab.metricsapi.rule_inputs import find_rule_mistakes
from trimtab.metricsapi.rules import is_metric_name, is_namespace_name
from trimtab.metricsapi.settings import Settings
from trimtab.runtime.log import Logger
from trimtab.usage.errors import UsageFault

MAX_DAYS = 30
"""The largest number of days of history from which a threshold is computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsApiOptions:
    """The options of `trimtab metrics-api`."""

    listen: Annotated[
        str | None,
        LISTEN.with_help("The address to serve on. Default: 0.0.0.0:8443; with port 0 the system chooses a free port."),
    ] = None
    rules_file: Annotated[
        Path | None,
        file_option(
            "--rules",
            help="A file with the rules of the metrics. Default: the ConfigMap trimtab-metrics.",
        ),
    ] = None
    certs_folder: Annotated[Path | None, CERTS.with_help("The folder with tls.crt and tls.key.")] = None
    prometheus_url: Annotated[str | None, PROMETHEUS.with_help("The Prometheus for rules with `from: query`.")] = None
    kubeconfig: Annotated[
        Path | None, KUBECONFIG.with_help("A kubeconfig file. Default: the pod's account, or your kubeconfig.")
    ] = None
    ready_file: Annotated[
        Path | None, READY_FILE.with_help("A file that the process writes as soon as it serves requests.")
    ] = None


@click.group(Settings.process, cls=SuggestingGroup, invoke_without_command=True)
@click.pass_context
@takes(MetricsApiOptions)
def verb(context: click.Context, options: MetricsApiOptions) -> None:
    """Serve custom metrics of pods (custom.metrics.k8s.io) until a signal, so that an HPA scales by request rate.

    API servers query the metrics that rules define; every replica collects and serves all of them. Nothing changes in
    the cluster. You can also set every option in the environment, such as TRIMTAB_METRICS_API_LISTEN; `trimtab explain
    TRIMTAB_METRICS_API_LISTEN` explains one.
    """
    if context.invoked_subcommand is not None:
        return
    with report_start_faults(hints={certs.CertsError: ISSUE_PAIR}):
        run_process(Settings, options, _check_rules_and_run)


def _check_rules_and_run(settings: Settings, log: Logger) -> None:
    if settings.rules_file is not None:
        _check_rules(settings.rules_file)
    run(settings, log)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsApiCheckOptions:
    """The options of `trimtab metrics-api check`."""

    files: Annotated[tuple[Path, ...], Argument("FILES...")]


@verb.command("check")
@takes(MetricsApiCheckOptions)
def check_rules(options: MetricsApiCheckOptions) -> None:
    """Check files of rules, and print every mistake with its line. Exits with 2 if there is one."""
    for file in options.files:
        _check_rules(file)
        print_text(f"{file}: valid")


def _check_rules(file: Path) -> None:
    try:
        mistakes = find_rule_mistakes(file)
    except (OSError, UnicodeError) as error:
        mistakes = (ConfigError(file=str(file), expected="a file of rules", got=str(error)),)
    if mistakes:
        raise UsageError(mistakes)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadHistoryOptions:
    """Where the history of the load comes from."""

    file: Annotated[
        Path | None, file_option("--history", help="A CSV file with the columns time, pod, rate and cores.")
    ] = None
    prometheus: Annotated[
        str | None, PROMETHEUS.with_help("Read the history from this Prometheus instead of a file.")
    ] = None
    rate_query: Annotated[
        str,
        option(
            "--rate-query",
            metavar="PROMQL",
            help="With --prometheus: the query for the requests per second of each pod.",
        ),
    ] = ""
    cpu_query: Annotated[
        str, option("--cpu-query", metavar="PROMQL", help="With --prometheus: the query for the cores of each pod.")
    ] = ""
    days: Annotated[int, DAYS.with_help(f"With --prometheus: the number of days of history, at most {MAX_DAYS}.")] = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeHpaOptions:
    """The options of `trimtab metrics-api propose-hpa`."""

    deployment: Annotated[str, Argument("DEPLOYMENT")]
    namespace: Annotated[str, NAMESPACE.with_help("The namespace of the workload that you ask about.")]
    metric: Annotated[
        str, option("--metric", metavar="NAME", help="The name of the metric, which is the name of a rule.")
    ]
    cpu_request: Annotated[str, quantity_option("--cpu-request", help="The cpu request of one pod, such as 500m.")]
    utilization_percent: Annotated[
        int,
        option(
            "--utilization",
            minimum=10,
            maximum=95,
            help="The usage that a pod should have, in percent of its cpu request.",
        ),
    ] = 70
    history: LoadHistoryOptions


@verb.command("propose-hpa")
@takes(ProposeHpaOptions)
def print_hpa(options: ProposeHpaOptions) -> None:
    """Print an HPA for DEPLOYMENT, with a threshold computed from history: requests per core.

    The target is an AverageValue, so it does not depend on the cpu requests, which a VPA changes. Exits with 1 if the
    history does not suffice, and says what is missing.
    """
    _check_names(options)
    _check_sources(options.cpu_request, options.history)
    terms = ProposalTerms(
        namespace=options.namespace,
        deployment=options.deployment,
        metric=options.metric,
        cpu_request=parse(options.cpu_request) / NANO_PER_UNIT,
        utilization=options.utilization_percent / 100,
    )
    proposal = propose_hpa(_read_history(options.history), terms)
    if isinstance(proposal, NotYet):
        print_text(f"{proposal}\n{proposal.reason.code.todo}", err=True)
        sys.exit(EXIT_FOUND)
    print_text(_describe_proposal(proposal))
    print_document(format_manifests([render_hpa(proposal, terms)]))


def _check_names(options: ProposeHpaOptions) -> None:
    """Raises an error if the API server would reject an HPA with these names."""
    mistakes = [
        ConfigError(file="command line", expected=f"{place}: a name that the API server accepts", got=name)
        for place, name, is_valid in (
            ("DEPLOYMENT", options.deployment, not any(subdomain_errors("metadata.name", options.deployment))),
            ("--namespace", options.namespace, is_namespace_name(options.namespace)),
            ("--metric", options.metric, is_metric_name(options.metric)),
        )
        if not is_valid
    ]
    if mistakes:
        raise UsageError(mistakes)


def _check_sources(cpu_request: str, history: LoadHistoryOptions) -> None:
    mistakes = []
    if not is_quantity(cpu_request):
        mistakes.append(("--cpu-request: a quantity such as 500m", cpu_request))
    if (history.file is None) == (history.prometheus is None):
        mistakes.append(("--history or --prometheus", "both" if history.file else "neither"))
    if history.prometheus and not (history.rate_query and history.cpu_query):
        mistakes.append(("--rate-query and --cpu-query", "--prometheus without --rate-query and --cpu-query"))
    errors = [ConfigError(file="command line", expected=expected, got=got) for expected, got in mistakes]
    errors += check_maximum("--days", history.days, MAX_DAYS)
    if errors:
        raise UsageError(errors)


def _read_history(history: LoadHistoryOptions) -> list[LoadPoint]:
    try:
        if history.file is not None:
            return read_csv_history(history.file)
        assert history.prometheus is not None
        return read_prometheus_history(history.prometheus, history.rate_query, history.cpu_query, history.days)
    except UsageFault as error:
        raise RuntimeFailure(str(error)) from None
    except OSError as error:
        raise UsageError([ConfigError(file=str(history.file), expected="a CSV file", got=str(error))]) from None


def _describe_proposal(proposal: HpaProposal) -> str:
    return (
        f"# A core serves {proposal.requests_per_core:.4g} requests per second; a pod without load uses "
        f"{proposal.base_cores:.3g} cores\n# (correlation {proposal.correlation:.2f}, "
        f"{format_count(proposal.points, 'point')})"
    )
