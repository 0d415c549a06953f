"""`trimtab pools check`: every mistake in the ConfigMaps of pools, and valid pools that do nothing in a cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import click
from rich.text import Text

from trimtab.cli.main import EXIT_FOUND
from trimtab.cli.options import takes
from trimtab.cli.output import API_VERSION, ReportPart
from trimtab.cli.pools.reasons import OTHER_NAMESPACE
from trimtab.cli.reporting.columns import Column, Frame, ReportView, Section, number_column
from trimtab.cli.reporting.emit import ReportOutput, write_report
from trimtab.cluster.cluster_state import snapshot_inventory
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import format_count, join_first
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pool import Pool, PoolIndex, pool_name
from trimtab.cluster.pool_config import SETTINGS_KEY, PoolReading, read_pools
from trimtab.cluster.pool_labels import POOL_LABEL
from trimtab.cluster.reason import Reason
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.yaml_documents import Document
from trimtab.compaction.drain.waiting import pool_mode
from trimtab.compaction.reasons import EMPTY_POOL, SHARED_POOLS
from trimtab.compactor.settings import Settings
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.flags import SYSTEM_NAMESPACE
from trimtab.inputs.live_cluster import ClusterOptions
from trimtab.inputs.option import Argument
from trimtab.inputs.plan_inputs import parse_documents

MAX_NAMES = 5
"""The largest number of names in one sentence."""


class CheckedPoolReport(ReportPart, frozen=True, kw_only=True):
    """One valid pool, with the number of its nodes."""

    name: str
    """The name of the pool."""
    mode: str
    """The mode: act, rehearse or off."""
    goal: str
    """What plans of the pool save: `cost` (money) or `nodes`."""
    nodes: int | None
    """The number of nodes that belong to the pool; null without --cluster."""


class PoolFindingReport(ReportPart, frozen=True, kw_only=True):
    """A valid pool that does not do what its author expects."""

    pool: str
    """The name of the pool."""
    code: str
    """The code of the reason."""
    text: str
    """The reason as a sentence with its values."""
    todo: str
    """What to do about it."""
    page: str
    """The page of the documentation about the code, with its anchor."""


class PoolsCheckReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab pools check`. Published as deploy/schemas/pools-check-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab pools check PATH"
    api_version: str = API_VERSION
    kind: str = "PoolsCheckReport"
    pools: list[CheckedPoolReport]
    """The valid pools."""
    findings: list[PoolFindingReport]
    """What pools do not do although their authors may expect it."""


def _list_columns(report: PoolsCheckReport) -> tuple[Column[CheckedPoolReport], ...]:
    has_nodes = any(pool.nodes is not None for pool in report.pools)
    nodes: Column[CheckedPoolReport] = number_column("nodes", lambda pool: pool.nodes, "{}", align="left")
    return (
        Column("pool", lambda pool: pool.name),
        Column("mode", lambda pool: pool.mode),
        Column("goal", lambda pool: pool.goal, rank=1),
        *((nodes,) if has_nodes else ()),
    )


def _describe_findings(report: PoolsCheckReport) -> Iterator[Text]:
    for finding in report.findings:
        yield Text(f"! {finding.pool}: {finding.text} ({finding.code})", style="yellow")
        yield Text(f"  What to do: {finding.todo}")


VIEW: ReportView[PoolsCheckReport] = ReportView(
    title="trimtab pools check",
    before=lambda report: [
        f"{format_count(len(report.pools), 'pool is', 'pools are')} valid."
        if report.pools
        else "The cluster has no pool, so the compactor drains no node."
    ],
    sections=(
        Section(
            key="pools",
            rows=lambda report: report.pools,
            columns=_list_columns,
            name=lambda pool: f"pool/{pool.name}",
            frame=Frame.NONE,
        ),
        Section(
            key="findings",
            rows=lambda report: report.findings,
            columns=(
                Column("pool", lambda finding: finding.pool),
                Column("reason", lambda finding: finding.code),
                Column("finding", lambda finding: finding.text),
                Column("fix", lambda finding: finding.todo),
            ),
            lines=_describe_findings,
        ),
    ),
)
"""The valid pools, then the findings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolsCheckOptions:
    """The options of `trimtab pools check`."""

    paths: Annotated[tuple[str, ...], Argument("[PATH]...", is_required=False)] = ()
    namespace: Annotated[str, SYSTEM_NAMESPACE] = Settings().namespace
    cluster: ClusterOptions
    output: ReportOutput


@click.command("check")
@takes(PoolsCheckOptions)
def check_pools(options: PoolsCheckOptions) -> None:
    """Check pools: report every mistake in their ConfigMaps, with its line. Exits with 2 if there is one.

    PATH is a file or folder with ConfigMaps; without PATH, the pools of --cluster are checked. A valid pool that will
    not work as its author expects is a finding, and the command exits with 1: its ConfigMap is in a namespace that the
    compactor does not read, or, with `--cluster`, no node belongs to the pool, or its nodes also belong to another
    pool.
    """
    report = build_check_report(options)
    write_report(options.output, report, VIEW)
    if report.findings:
        sys.exit(EXIT_FOUND)


def build_check_report(options: PoolsCheckOptions) -> PoolsCheckReport:
    """Returns the valid pools of the files, or else of the cluster, with the findings. Raises UsageError with every
    mistake."""
    paths, namespace, cluster = options.paths, options.namespace, options.cluster
    if not paths and not cluster.paths:
        expected = "PATH: files or folders with the ConfigMaps of pools, or --cluster live"
        raise UsageError([ConfigError(file="command line", expected=expected, got="none")])
    cluster_documents, cluster_mistakes = parse_documents(
        live_cluster.read_live_objects(cluster, ("Node", "ConfigMap"))
    )
    documents, mistakes = parse_documents(live_cluster.read_paths(paths)) if paths else (cluster_documents, [])
    is_here = {False: [], True: []}  # type: dict[bool, list[Document]]
    for document in filter(is_pool_document, documents):
        is_here[_namespace(document) in ("", namespace)].append(document)
    # Only pools of the compactor's namespace exist for it. A file is checked wherever its ConfigMaps are to go.
    reading = read_pools([*is_here[True], *is_here[False]] if paths else is_here[True])
    mistakes = [*cluster_mistakes, *mistakes, *reading.mistakes, *find_missing_labels(documents)]
    if not (mistakes or reading.pools or is_here[False]) and paths:
        expected = f"a pool: a ConfigMap labelled {POOL_LABEL} with its settings under {SETTINGS_KEY}"
        mistakes.append(ConfigError(file=", ".join(paths), expected=expected, got="none"))
    if mistakes:
        raise UsageError(mistakes)
    nodes = snapshot_inventory(build_snapshot(cluster_documents).snapshot).nodes if cluster.paths else None
    findings = [*find_strays(is_here[False], namespace), *(find_problems(reading, nodes) if nodes is not None else ())]
    return PoolsCheckReport(
        pools=[_report_pool(pool, nodes) for pool in reading.pools],
        findings=[
            PoolFindingReport(
                pool=pool, code=reason.code.name, text=reason.sentence, todo=reason.code.todo, page=reason.page_path
            )
            for pool, reason in findings
        ],
    )


def is_pool_document(document: Document) -> bool:
    """Returns whether the document is a ConfigMap with the label that marks pools."""
    return document.kind == "ConfigMap" and POOL_LABEL in _labels(document)


def find_missing_labels(documents: Iterable[Document]) -> Iterator[ConfigError]:
    """Yields a mistake for each ConfigMap that contains the settings of a pool but lacks the label that marks pools."""
    for document in documents:
        data = document.value.get("data") if document.kind == "ConfigMap" else None
        if isinstance(data, dict) and SETTINGS_KEY in data and POOL_LABEL not in _labels(document):
            yield document.error_at(
                ("metadata", "labels"),
                f"the label {POOL_LABEL} with the name of the pool",
                "none",
                "without it the compactor does not read the ConfigMap",
            )


def find_strays(documents: Iterable[Document], namespace: str) -> Iterator[tuple[str, Reason]]:
    """Yields (pool, reason) for each pool whose ConfigMap is not in the compactor's namespace, `namespace`."""
    for document in documents:
        name = str(_labels(document)[POOL_LABEL])
        yield (
            name,
            OTHER_NAMESPACE(
                f"the ConfigMap is in namespace {_namespace(document)}, but the compactor reads namespace {namespace}"
            ),
        )


def find_problems(reading: PoolReading, nodes: Sequence[NodeInfo]) -> Iterator[tuple[str, Reason]]:
    """Yields (pool, reason) for each enabled pool without nodes, and for pools that share nodes."""
    pools = [pool for pool in reading.pools if pool.enabled]
    names = sorted({pool_name(node) for node in nodes} - {""})
    there_are = f"the nodes' labels name {join_first(names, MAX_NAMES)}" if names else "no node has a pool label"
    shared: dict[tuple[str, ...], list[str]] = {}
    index = PoolIndex(pools)
    for node in nodes:
        owners = index.pools_of(node)
        if len(owners) > 1:
            shared.setdefault(tuple(pool.name for pool in owners), []).append(node.name)
    for pool in pools:
        if not any(map(pool.has_node, nodes)):
            yield pool.name, EMPTY_POOL(f"no node belongs to pool {pool.name}; {there_are}")
    for (first, *others), node_names in shared.items():
        verb = "belongs" if len(node_names) == 1 else "belong"
        yield (
            first,
            SHARED_POOLS(
                f"{format_count(len(node_names), 'node')} of this pool also {verb} to "
                f"{' and '.join(others)}: {join_first(node_names, MAX_NAMES)}"
            ),
        )


def _report_pool(pool: Pool, nodes: Sequence[NodeInfo] | None) -> CheckedPoolReport:
    count = None if nodes is None else sum(map(pool.has_node, nodes))
    return CheckedPoolReport(name=pool.name, mode=pool_mode(pool), goal=pool.goal.value, nodes=count)


def _labels(document: Document) -> dict[str, object]:
    metadata = document.value.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return labels if isinstance(labels, dict) else {}


def _namespace(document: Document) -> str:
    metadata = document.value.get("metadata")
    return str(metadata.get("namespace") or "") if isinstance(metadata, dict) else ""
