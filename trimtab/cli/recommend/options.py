"""The options of `trimtab recommend` (the sources of usage, the selection, and the report) and their validation."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from trimtab.cli.quantity_option import add_quantity_option
from trimtab.cli.recommend.build_report import Question, parse_selection
from trimtab.cli.recommend.report import NAMESPACE
from trimtab.cli.reporting.emit import add_report_options_with
from trimtab.cli.shared_options import WINDOW, needs_cluster
from trimtab.cluster import quantity, usage_rule
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.usage_rule import UsageRule
from trimtab.histogram.batch_history import RESOURCES
from trimtab.inputs import live_cluster
from trimtab.inputs import usage_sources as sources
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.plan_inputs import parse_now
from trimtab.sizing.request import SizingSettings
from trimtab.sizing.statistics import SizingSeverity
from trimtab.usage import prometheus_queries
from trimtab.usage.cluster_label import LABELS, Matchers
from trimtab.usage.prometheus_queries import Names

F = TypeVar("F", bound=Callable[..., Any])

_SOURCES = (
    click.option(
        "--usage",
        "paths",
        multiple=True,
        metavar="PATH",
        help="The file with usage: CSV or Parquet (columns timestamp, namespace, pod, container, cpu, memory), a "
        "saved response of Prometheus or export of VictoriaMetrics, or VPA checkpoints. A file may be compressed with "
        "gzip; - is standard input.",
    ),
    add_quantity_option,
    click.option(
        "--prometheus",
        "url",
        metavar="URL",
        help="The URL of Prometheus, Thanos, Mimir or another server with the same API.",
    ),
    click.option(
        "--kubelets",
        is_flag=True,
        help="With --cluster live: read the kubelet of each node instead of the metrics API (needs the permission "
        "`get` on nodes/proxy).",
    ),
    click.option(
        "--header",
        "headers",
        multiple=True,
        metavar="'NAME: VALUE'",
        help="A header to log in or to select a tenant, such as Authorization or X-Scope-OrgID.",
    ),
    click.option(
        "--header-file",
        "header_files",
        multiple=True,
        metavar="FILE",
        envvar="TRIMTAB_RECOMMENDER_PROMETHEUS_HEADER_FILE",
        help="A file with one header in each line, so that no secret is visible in the list of processes.",
    ),
    click.option(
        "--token-file",
        metavar="FILE",
        envvar="TRIMTAB_RECOMMENDER_PROMETHEUS_TOKEN_FILE",
        help="The file with a bearer token to log in. TRIMTAB_RECOMMENDER_PROMETHEUS_TOKEN may contain the token "
        "itself instead.",
    ),
    click.option("--token", hidden=True, envvar="TRIMTAB_RECOMMENDER_PROMETHEUS_TOKEN", expose_value=True),
    click.option(
        "--ca",
        metavar="FILE",
        envvar="TRIMTAB_RECOMMENDER_PROMETHEUS_CA_FILE",
        help="A file with the authorities that sign Prometheus' certificate.",
    ),
    click.option(
        "--certificate",
        metavar="FILE",
        envvar="TRIMTAB_RECOMMENDER_PROMETHEUS_CERTIFICATE_FILE",
        help="Your client certificate, for a server that requires one.",
    ),
    click.option(
        "--key",
        metavar="FILE",
        envvar="TRIMTAB_RECOMMENDER_PROMETHEUS_KEY_FILE",
        help="The key of the client certificate, if the key is in another file.",
    ),
    click.option(
        "--matcher",
        default="",
        metavar="MATCHER",
        help='A matcher that restricts every query and every file, such as cluster="prod".',
    ),
    click.option(
        "--by",
        default="",
        metavar="LABEL",
        help="Report each value of this label separately, for example with the label cluster.",
    ),
    click.option(
        "--cpu-metric",
        default="",
        metavar="NAME",
        help="The counter of cpu usage, if its name differs from cAdvisor's.",
    ),
    click.option(
        "--cpu-recorded",
        default="",
        metavar="NAME",
        help="A recording rule that gives the cores in use; it replaces the counter.",
    ),
    click.option(
        "--memory-metric",
        default="",
        metavar="NAME",
        help="The gauge of the memory working set, if its name differs from cAdvisor's.",
    ),
    click.option(
        "--label-name",
        "label_names",
        multiple=True,
        metavar="OURS=THEIRS",
        help="Your name for the label namespace, pod or container, such as pod=k8s_pod_name.",
    ),
    click.option(
        "--at-once",
        default=4,
        show_default=True,
        type=click.IntRange(1, 16),
        help="The number of concurrent queries to Prometheus.",
    ),
    click.option(
        "--days", default=14, show_default=True, type=click.IntRange(1, 60), help="The number of days of history."
    ),
    click.option(
        "--step",
        default=300,
        show_default=True,
        type=click.IntRange(15, 3600),
        help="The number of seconds between two points of a series.",
    ),
    click.option(
        "--rate",
        default="5m",
        show_default=True,
        metavar="WINDOW",
        help="The window over which cpu usage is averaged. It must span at least four scrapes.",
    ),
    click.option(
        "--start-up",
        "start_up",
        default=0,
        show_default=True,
        type=click.IntRange(0, 3600),
        metavar="SECONDS",
        help="Ignore the cpu usage in this time after the start of a pod, and report how high it was.",
    ),
    click.option(
        "--now",
        metavar="TIME",
        help="The end of the history that is read from Prometheus. Ages are relative to this time.",
    ),
)
_SELECTION = (
    click.option(
        "-n", "--namespace", "namespaces", multiple=True, metavar="NAME", help="Include only pods in this namespace."
    ),
    click.option(
        "-A",
        "--all-namespaces",
        is_flag=True,
        help="Include all namespaces, even if --namespace names one. This is the default.",
    ),
    click.option(
        "-l",
        "--selector",
        metavar="SELECTOR",
        help="Include only pods with these labels, in kubectl's syntax. The labels of a pod's namespace count as well.",
    ),
    click.option(
        "--kind",
        "kinds",
        multiple=True,
        metavar="KIND",
        help="Include only workloads of these kinds, such as Deployment,StatefulSet.",
    ),
    click.option(
        "--severity",
        type=click.Choice(["low", "medium", "high"]),
        metavar="LEVEL",
        help="Show only findings of at least this severity: low, medium or high.",
    ),
    click.option(
        "--total-by",
        "total_by",
        multiple=True,
        metavar="LABEL",
        help="Sum the requests by namespace, by kind, or by a label such as team.  [default: namespace]",
    ),
    click.option(
        "--against",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="Show the changes since an earlier report, which was written with -o json.",
    ),
)
_REPORT = (
    click.option(
        "--rule",
        default="adaptive",
        show_default=True,
        metavar="RULE",
        help="The rule for workloads that no HPA scales, as in policies: adaptive, a percentile such as p95 or "
        "p99.5, or max; with headroom as in 'p99 +15%', or +15% alone.",
    ),
    click.option(
        "--memory-rule", metavar="RULE", help="The rule for memory, if it differs from --rule, such as 'max +15%'."
    ),
    click.option(
        "--pods",
        type=click.Choice(["typical", "largest"]),
        default="typical",
        show_default=True,
        help="What to do if one pod always uses far more than the others, as in policies: `largest` chooses "
        "requests for that pod, `typical` does so only if at least a tenth of the pods use as much.",
    ),
    click.option(
        "--least-cpu", default="10m", show_default=True, metavar="QUANTITY", help="The smallest request for cpu."
    ),
    click.option(
        "--least-memory", default="16Mi", show_default=True, metavar="QUANTITY", help="The smallest request for memory."
    ),
    click.option(
        "--allow-hpa",
        is_flag=True,
        help="Also change requests on which an HPA depends, and report how the HPA would react.",
    ),
    click.option(
        "--guaranteed",
        is_flag=True,
        help="Also change pods of the QoS class Guaranteed, with equal requests and limits.",
    ),
    click.option(
        "--vpa-down",
        is_flag=True,
        help="Assume that the VPA's webhook cannot change pods, so that Trimtab recommends the 95th percentile "
        "instead of the 5th. With a live cluster Trimtab checks this by itself.",
    ),
    click.option("--patch", "folder", metavar="FOLDER", help="Write kustomize patches to this folder."),
    click.option(
        "--min-confidence",
        default=0.5,
        show_default=True,
        type=click.FloatRange(0, 1),
        help="A patch lowers no request whose confidence is below this value (minConfidence in policies).",
    ),
    click.option(
        "--export-vpa",
        "export",
        metavar="FILE",
        type=click.Path(dir_okay=False, writable=True),
        help="Write checkpoints to this file, from which a new VPA can start.",
    ),
    click.option(
        "--number",
        is_flag=True,
        help="Print only one number: the request for a single series, not rounded. A series of which nothing says what "
        "it is counts as cpu.",
    ),
    add_report_options_with("krr-csv"),
)


def add_recommend_options(function: F) -> F:
    """Decorate a click command with all options, in the order in which the help lists them."""
    for option in reversed((*_SOURCES, *_SELECTION, *_REPORT)):
        function = option(function)
    return function


def parse_options(
    cluster: live_cluster.ClusterOptions, paths: tuple[str, ...], url: str | None, now: str | None, more: dict[str, Any]
) -> tuple[Question, dict[str, str]]:
    """Returns what the user asks of the report, and the HTTP headers for Prometheus. Raises UsageError with every
    mistake."""
    now_seconds, mistakes = parse_now(now)
    rules, more_mistakes = _parse_rules(more["rule"], more["memory_rule"])
    mistakes += more_mistakes
    least_requests = {}
    for resource in RESOURCES:
        text = more[f"least_{resource}"]
        if quantity.is_quantity(text):
            least_requests[resource] = max(1, quantity.scheduler_value(resource, text))
        else:
            mistakes.append(ConfigError(file=f"--least-{resource}", expected="a quantity", got=repr(text)))
    if not WINDOW.fullmatch(more["rate"]):
        mistakes.append(ConfigError(file="--rate", expected="a window such as 5m or 2h", got=repr(more["rate"])))
    if not paths and url is None and live_cluster.LIVE not in cluster.paths:
        expected = "usage: --usage PATH, --prometheus URL or --cluster live"
        mistakes.append(ConfigError(file="command line", expected=expected, got="none"))
    if more["kubelets"] and (live_cluster.LIVE not in cluster.paths or paths or url is not None):
        expected = "--cluster live, without --usage and --prometheus"
        mistakes.append(ConfigError(file="--kubelets", expected=expected, got="another source of usage"))
    if url is not None and not url.startswith(("http://", "https://")):
        mistakes.append(
            ConfigError(file="--prometheus", expected="an address such as https://prometheus:9090", got=url)
        )
    mistakes += _check_division(cluster, more)
    try:
        Matchers.from_text(more["matcher"])
    except ValueError as error:
        mistakes.append(ConfigError(file="--matcher", expected=str(error), got=repr(more["matcher"])))
    try:
        mistakes += [ConfigError(file="--" + name_kind.replace("_", "-"), expected=expected, got="another value")
                     for name_kind, expected in prometheus_queries.invalid_names(parse_names(more))]  # fmt: skip
    except ValueError as error:
        mistakes.append(ConfigError(file="--label-name", expected=str(error), got=repr(", ".join(more["label_names"]))))
    selected, more_mistakes = parse_selection(
        () if more["all_namespaces"] else more["namespaces"],
        more["kinds"],
        more["selector"],
        has_cluster=bool(cluster.paths),
    )
    mistakes += more_mistakes
    if more["folder"] and not cluster.paths:
        mistakes.append(needs_cluster("--patch"))
    if more["against"] and more["number"]:
        mistakes.append(ConfigError(file="--against", expected="a recommendation report", got="--number"))
    if mistakes:
        raise UsageError(mistakes)
    settings = SizingSettings(
        rule=rules["--rule"],
        memory_rule=rules.get("--memory-rule"),
        min_cpu=least_requests["cpu"],
        min_memory=least_requests["memory"],
        allow_hpa=more["allow_hpa"],
        guaranteed=more["guaranteed"],
        cover_largest_pod=more["pods"] == "largest",
    )
    question = Question(
        settings=settings, now=now_seconds, by=more["by"], selection=selected,
        least_severity=SizingSeverity(more["severity"] or "unknown"),
        total_by=more["total_by"] or (*([more["by"]] if more["by"] else []), NAMESPACE),
    )  # fmt: skip
    return question, sources.parse_headers(more["headers"], more["header_files"], more["token_file"], more["token"])


def parse_names(more: dict[str, Any]) -> Names:
    """Returns the names of metrics and labels in Prometheus. Raises ValueError if an option is invalid."""
    own = {"cpu": more["cpu_metric"], "memory": more["memory_metric"], "cpu_recorded": more["cpu_recorded"]}
    return Names(
        **{name: text for name, text in own.items() if text},
        labels=prometheus_queries.parse_label_names(more["label_names"]),
    )


def _check_division(cluster: live_cluster.ClusterOptions, more: dict[str, Any]) -> list[ConfigError]:
    """Returns the mistakes of combining --by with options that need a single cluster."""
    if not more["by"]:
        return []
    mistakes = []
    if more["by"] not in LABELS:
        expected = f"a label that distinguishes clusters: {', '.join(LABELS)}"
        mistakes.append(ConfigError(file="--by", expected=expected, got=repr(more["by"])))
    alone = {"--cluster": bool(cluster.paths), "--patch": more["folder"], "--export-vpa": more["export"],
             "--number": more["number"]}  # fmt: skip
    todo = f"choose one with --matcher '{more['by']}=\"…\"'"
    return mistakes + [ConfigError(file=option, expected="usage of one cluster", got=f"--by {more['by']}", todo=todo)
                       for option, value in alone.items() if value]  # fmt: skip


def _parse_rules(rule: str, memory: str | None) -> tuple[dict[str, UsageRule], list[ConfigError]]:
    """Returns option → the rule that it names, and the mistakes in the options."""
    rules, mistakes = dict[str, UsageRule](), list[ConfigError]()
    for option, text in (("--rule", rule), ("--memory-rule", memory)):
        try:
            if text is not None:
                rules[option] = usage_rule.parse(text)
        except ValueError as error:
            mistakes.append(ConfigError(file=option, expected=str(error), got=repr(text)))
    return rules, mistakes
