"""The options of `trimtab recommend` (the sources of usage, the selection, and the report) and their validation."""

from dataclasses import dataclass
from typing import Annotated, Literal

import click

from trimtab.cli.recommend.build_report import Question, parse_selection
from trimtab.cli.recommend.report import NAMESPACE as NAMESPACE_TOTAL
from trimtab.cli.reporting.emit import ReportOutput, output_form
from trimtab.cli.shared_options import WINDOW, check_maximum, needs_cluster
from trimtab.cluster import quantity, usage_rule
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.usage_rule import UsageRule
from trimtab.histogram.batch_history import RESOURCES
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.flags import (
    ALL_NAMESPACES,
    AT_ONCE,
    BY,
    DAYS,
    MATCHER,
    NAMESPACE,
    NOW,
    NOW_HELP,
    PRICES,
    PROMETHEUS,
    RATE,
    RULE,
    SELECTOR,
    STEP,
    USAGE,
)
from trimtab.inputs.live_cluster import ClusterOptions
from trimtab.inputs.option import file_option, option, quantity_option
from trimtab.inputs.plan_inputs import parse_now
from trimtab.inputs.prometheus_login import PrometheusLogin
from trimtab.inputs.stated_quantities import QUANTITY
from trimtab.sizing.request import SizingSettings
from trimtab.sizing.statistics import SizingSeverity
from trimtab.usage import prometheus_queries
from trimtab.usage.cluster_label import LABELS, Matchers
from trimtab.usage.metric_names import NOTHING_STATED, StatedQuantities
from trimtab.usage.prometheus_queries import Names

MAX_DAYS, MAX_STEP = 60, 3600
"""The largest values of --days and --step, because the whole history is read at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryNames:
    """The names of metrics and labels in Prometheus, as the command line gives them."""

    cpu_metric: Annotated[
        str,
        option("--cpu-metric", metavar="NAME", help="The counter of cpu usage, if its name differs from cAdvisor's."),
    ] = ""
    cpu_recorded: Annotated[
        str,
        option(
            "--cpu-recorded",
            metavar="NAME",
            help="A recording rule that gives the cores in use; it replaces the counter.",
        ),
    ] = ""
    memory_metric: Annotated[
        str,
        option(
            "--memory-metric",
            metavar="NAME",
            help="The gauge of the memory working set, if its name differs from cAdvisor's.",
        ),
    ] = ""
    label_names: Annotated[
        tuple[str, ...],
        option(
            "--label-name",
            metavar="OURS=THEIRS",
            help="Your name for the label namespace, pod or container, such as pod=k8s_pod_name.",
        ),
    ] = ()

    def parse(self) -> Names:
        """Returns the names. Raises ValueError if an option is invalid."""
        own = {"cpu": self.cpu_metric, "memory": self.memory_metric, "cpu_recorded": self.cpu_recorded}
        return Names(
            **{name: text for name, text in own.items() if text},
            labels=prometheus_queries.parse_label_names(self.label_names),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The sources of usage, and how usage is read from them."""

    paths: Annotated[
        tuple[str, ...],
        USAGE.with_help(
            "The file with usage: CSV or Parquet (columns timestamp, namespace, pod, container, cpu, memory), a "
            "saved response of Prometheus or export of VictoriaMetrics, or VPA checkpoints. A file may be compressed "
            "with gzip; - is standard input."
        ),
    ] = ()
    stated: Annotated[StatedQuantities, QUANTITY] = NOTHING_STATED
    url: Annotated[
        str | None, PROMETHEUS.with_help("The URL of Prometheus, Thanos, Mimir or another server with the same API.")
    ] = None
    kubelets: Annotated[
        bool,
        option(
            "--kubelets",
            help="With --cluster live: read the kubelet of each node instead of the metrics API (needs the permission "
            "`get` on nodes/proxy).",
        ),
    ] = False
    login: PrometheusLogin
    certificate: Annotated[
        str | None,
        file_option(
            "--certificate",
            variable="TRIMTAB_RECOMMENDER_PROMETHEUS_CERTIFICATE_FILE",
            help="Your client certificate, for a server that requires one.",
        ),
    ] = None
    key: Annotated[
        str | None,
        file_option(
            "--key",
            variable="TRIMTAB_RECOMMENDER_PROMETHEUS_KEY_FILE",
            help="The key of the client certificate, if the key is in another file.",
        ),
    ] = None
    matcher: Annotated[
        str, MATCHER.with_help('A matcher that restricts every query and every file, such as cluster="prod".')
    ] = ""
    by: Annotated[
        str, BY.with_help("Report each value of this label separately, for example with the label cluster.")
    ] = ""
    names: QueryNames
    at_once: Annotated[int, AT_ONCE.with_help("The number of concurrent queries to Prometheus.")] = 4
    days: Annotated[int, DAYS.with_help(f"The number of days of history, at most {MAX_DAYS}.")] = 14
    step: Annotated[
        int, STEP.with_help(f"The number of seconds between two points of a series, at most {MAX_STEP}.")
    ] = 300
    rate: Annotated[str, RATE] = "5m"
    start_up: Annotated[
        int,
        option(
            "--start-up",
            minimum=0,
            maximum=3600,
            metavar="SECONDS",
            help="Ignore the cpu usage in this time after the start of a pod, and report how high it was.",
        ),
    ] = 0
    now: Annotated[
        str | None,
        NOW.with_help(f"{NOW_HELP} Default: now for a history of Prometheus; otherwise none, so ages are ignored."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceOptions:
    """Which containers the report has, and how it sums them."""

    namespaces: Annotated[tuple[str, ...], NAMESPACE] = ()
    all_namespaces: Annotated[bool, ALL_NAMESPACES] = False
    selector: Annotated[
        str | None,
        SELECTOR.with_help(
            "Include only pods with these labels, in kubectl's syntax. The labels of a pod's namespace count as well."
        ),
    ] = None
    kinds: Annotated[
        tuple[str, ...],
        option("--kind", metavar="KIND", help="Include only workloads of these kinds, such as Deployment,StatefulSet."),
    ] = ()
    severity: Annotated[
        Literal["low", "medium", "high"] | None,
        option(
            "--severity", metavar="LEVEL", help="Show only findings of at least this severity: low, medium or high."
        ),
    ] = None
    total_by: Annotated[
        tuple[str, ...],
        option(
            "--total-by",
            metavar="LABEL",
            help="Sum the requests by namespace, by kind, or by a label such as team.  [default: namespace]",
        ),
    ] = ()
    against: Annotated[
        str | None,
        file_option(
            "--against",
            type=click.Path(dir_okay=False),
            help="Show the changes since an earlier report, which was written with -o json.",
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingOptions:
    """How a request is computed."""

    rule: Annotated[
        str,
        RULE.with_help(
            "The rule for workloads that no HPA scales, as in policies: adaptive, a percentile such as p95 or "
            "p99.5, or max; with headroom as in 'p99 +15%', or +15% alone."
        ),
    ] = "adaptive"
    memory_rule: Annotated[
        str | None,
        option(
            "--memory-rule", metavar="RULE", help="The rule for memory, if it differs from --rule, such as 'max +15%'."
        ),
    ] = None
    pods: Annotated[
        Literal["typical", "largest"],
        option(
            "--pods",
            help="What to do if one pod always uses far more than the others, as in policies: `largest` chooses "
            "requests for that pod, `typical` does so only if at least a tenth of the pods use as much.",
        ),
    ] = "typical"
    least_cpu: Annotated[str, quantity_option("--least-cpu", help="The smallest request for cpu.")] = "10m"
    least_memory: Annotated[str, quantity_option("--least-memory", help="The smallest request for memory.")] = "16Mi"
    allow_hpa: Annotated[
        bool,
        option("--allow-hpa", help="Also change requests on which an HPA depends, and report how the HPA would react."),
    ] = False
    guaranteed: Annotated[
        bool,
        option("--guaranteed", help="Also change pods of the QoS class Guaranteed, with equal requests and limits."),
    ] = False
    pod_level: Annotated[
        bool,
        option(
            "--pod-level",
            help="Also report one request for all containers of a pod, from the usage of their sum, and what it would "
            "save. Needs --cluster, and --usage or --prometheus.",
        ),
    ] = False
    vpa_down: Annotated[
        bool,
        option(
            "--vpa-down",
            help="Assume that the VPA's webhook cannot change pods, so that Trimtab recommends the 95th percentile "
            "instead of the 5th. With a live cluster Trimtab checks this by itself.",
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """What the command writes beside the report."""

    folder: Annotated[
        str | None, option("--patch", metavar="FOLDER", help="Write kustomize patches to this folder.")
    ] = None
    min_confidence: Annotated[
        float,
        option(
            "--min-confidence",
            minimum=0,
            maximum=1,
            help="A patch lowers no request whose confidence is below this value (minConfidence in policies).",
        ),
    ] = 0.5
    vpa_checkpoints: Annotated[
        str | None,
        file_option(
            "--export-vpa",
            type=click.Path(dir_okay=False, writable=True),
            help="Write checkpoints to this file, from which a new VPA can start.",
        ),
    ] = None
    prints_number: Annotated[
        bool,
        option(
            "--number",
            help="Print only one number: the request for a single series, not rounded. A series of which nothing says "
            "what it is counts as cpu.",
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendOutput(ReportOutput):
    """How and where the report is written."""

    form: Annotated[str, output_form("html", "krr-csv")] = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendOptions:
    """The options of `trimtab recommend`."""

    cluster: ClusterOptions
    source: SourceOptions
    price_paths: Annotated[tuple[str, ...], PRICES] = ()
    choice: ChoiceOptions
    sizing: SizingOptions
    export: ExportOptions
    output: RecommendOutput


def parse_options(options: RecommendOptions) -> tuple[Question, dict[str, str]]:
    """Returns what the user asks of the report, and the HTTP headers for Prometheus. Raises UsageError with every
    mistake."""
    cluster, source, choice, sizing = options.cluster, options.source, options.choice, options.sizing
    now_seconds, mistakes = parse_now(source.now)
    mistakes += [*check_maximum("--days", source.days, MAX_DAYS), *check_maximum("--step", source.step, MAX_STEP)]
    rules, more_mistakes = _parse_rules(sizing.rule, sizing.memory_rule)
    mistakes += more_mistakes
    least_requests = {}
    for resource, text in zip(RESOURCES, (sizing.least_cpu, sizing.least_memory), strict=True):
        if quantity.is_quantity(text):
            least_requests[resource] = max(1, quantity.scheduler_value(resource, text))
        else:
            mistakes.append(ConfigError(file=f"--least-{resource}", expected="a quantity", got=repr(text)))
    if not WINDOW.fullmatch(source.rate):
        mistakes.append(ConfigError(file="--rate", expected="a window such as 5m or 2h", got=repr(source.rate)))
    if not source.paths and source.url is None and live_cluster.LIVE not in cluster.paths:
        expected = "usage: --usage PATH, --prometheus URL or --cluster live"
        mistakes.append(ConfigError(file="command line", expected=expected, got="none"))
    if source.kubelets and (live_cluster.LIVE not in cluster.paths or source.paths or source.url is not None):
        expected = "--cluster live, without --usage and --prometheus"
        mistakes.append(ConfigError(file="--kubelets", expected=expected, got="another source of usage"))
    if source.url is not None and not source.url.startswith(("http://", "https://")):
        mistakes.append(
            ConfigError(file="--prometheus", expected="an address such as https://prometheus:9090", got=source.url)
        )
    mistakes += _check_division(options)
    try:
        Matchers.from_text(source.matcher)
    except ValueError as error:
        mistakes.append(ConfigError(file="--matcher", expected=str(error), got=repr(source.matcher)))
    try:
        mistakes += [
            ConfigError(file="--" + name_kind.replace("_", "-"), expected=expected, got="another value")
            for name_kind, expected in prometheus_queries.invalid_names(source.names.parse())
        ]
    except ValueError as error:
        mistakes.append(
            ConfigError(file="--label-name", expected=str(error), got=repr(", ".join(source.names.label_names)))
        )
    selected, more_mistakes = parse_selection(
        () if choice.all_namespaces else choice.namespaces,
        choice.kinds,
        choice.selector,
        has_cluster=bool(cluster.paths),
    )
    mistakes += more_mistakes
    if sizing.pod_level and not cluster.paths:
        mistakes.append(needs_cluster("--pod-level"))
    if sizing.pod_level and not (source.paths or source.url is not None):
        # Neither checkpoints nor the metrics API have the containers of a pod moment by moment.
        mistakes.append(ConfigError(file="--pod-level", expected="--usage or --prometheus", got="neither"))
    if options.export.folder and not cluster.paths:
        mistakes.append(needs_cluster("--patch"))
    if choice.against and options.export.prints_number:
        mistakes.append(ConfigError(file="--against", expected="a recommendation report", got="--number"))
    if mistakes:
        raise UsageError(mistakes)
    settings = SizingSettings(
        rule=rules["--rule"],
        memory_rule=rules.get("--memory-rule"),
        min_cpu=least_requests["cpu"],
        min_memory=least_requests["memory"],
        allow_hpa=sizing.allow_hpa,
        guaranteed=sizing.guaranteed,
        cover_largest_pod=sizing.pods == "largest",
    )
    question = Question(
        settings=settings,
        now=now_seconds,
        by=source.by,
        selection=selected,
        least_severity=SizingSeverity(choice.severity or "unknown"),
        pod_level=sizing.pod_level,
        total_by=choice.total_by or (*([source.by] if source.by else []), NAMESPACE_TOTAL),
    )
    return question, source.login.parse_headers()


def _check_division(options: RecommendOptions) -> list[ConfigError]:
    """Returns the mistakes of combining --by with options that need a single cluster."""
    by = options.source.by
    if not by:
        return []
    mistakes = []
    if by not in LABELS:
        expected = f"a label that distinguishes clusters: {', '.join(LABELS)}"
        mistakes.append(ConfigError(file="--by", expected=expected, got=repr(by)))
    exports = options.export
    alone = {
        "--cluster": bool(options.cluster.paths),
        "--patch": exports.folder,
        "--export-vpa": exports.vpa_checkpoints,
        "--number": exports.prints_number,
    }
    todo = f"choose one with --matcher '{by}=\"…\"'"
    return mistakes + [
        ConfigError(file=flag, expected="usage of one cluster", got=f"--by {by}", todo=todo)
        for flag, value in alone.items()
        if value
    ]


def _parse_rules(rule: str, memory: str | None) -> tuple[dict[str, UsageRule], list[ConfigError]]:
    """Returns flag → the rule that it names, and the mistakes in the options."""
    rules, mistakes = dict[str, UsageRule](), list[ConfigError]()
    for flag, text in (("--rule", rule), ("--memory-rule", memory)):
        try:
            if text is not None:
                rules[flag] = usage_rule.parse(text)
        except ValueError as error:
            mistakes.append(ConfigError(file=flag, expected=str(error), got=repr(text)))
    return rules, mistakes
