"""The command line of `trimtab idle`, which prints a report or manifests and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import click

from trimtab.cli import output
from trimtab.cli.idle import report as parts
from trimtab.cli.idle.report import IdleReport, select_rows
from trimtab.cli.idle.table import VIEW
from trimtab.cli.options import takes
from trimtab.cli.reporting.emit import ReportOutput, write_report
from trimtab.cli.selection import SelectionOptions, list_namespaces
from trimtab.cli.shared_options import parse_minor_version
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.kinds import CRON_JOB, DAEMON_SET, JOB, POD, GroupKind
from trimtab.cluster.own_objects import OWN_NAMESPACE, is_own, own_namespaces
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.reason import NotYet
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.yaml_documents import Document
from trimtab.idle.claim_usage import VolumeUsage, find_claim_savings
from trimtab.idle.object_mentions import Manifest, name_of
from trimtab.idle.orphans import find_orphans
from trimtab.idle.quiet_hours import HourlyUsage, QuietHours, fill_absent_hours, find_quiet_hours
from trimtab.idle.sleep_proposals import (
    SLEEPING_KINDS,
    MissedSleep,
    find_missed_sleep,
    propose_scale_to_zero,
    propose_sleep_infos,
)
from trimtab.idle.sleep_schedules import SleepSchedule, read_sleep_schedules
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import LoginError, RuntimeFailure, UsageError
from trimtab.inputs.current_requests import RESOURCES, CurrentRequests, read_current_requests
from trimtab.inputs.flags import MANIFESTS, NOW_BY_CLOCK, PRICES, SERVER_VERSION, SUMMARY, USAGE
from trimtab.inputs.option import option
from trimtab.inputs.plan_inputs import parse_documents, parse_now
from trimtab.inputs.price_sources import read_price_sources
from trimtab.inputs.stated_quantities import QUANTITY
from trimtab.inputs.usage_series import read_usage_series
from trimtab.kube.errors import InvalidResponse
from trimtab.machines.prices import PriceFile
from trimtab.policy.cluster_facts import from_snapshot
from trimtab.runtime import clock
from trimtab.usage.kubelet import claims_of_summary
from trimtab.usage.metric_names import NOTHING_STATED, StatedQuantities
from trimtab.usage.series import Series, container_key

_NEVER_SLEEPING = frozenset({CRON_JOB, DAEMON_SET, JOB, POD})
"""Kinds of workloads that cannot be scaled to zero, so that their quiet hours save nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleOptions:
    """The options of `trimtab idle`."""

    cluster: live_cluster.ClusterOptions
    selection: SelectionOptions
    usage: Annotated[
        tuple[str, ...], USAGE.with_help("Usage of two weeks or more: CSV, Parquet or a saved response of Prometheus.")
    ] = ()
    stated: Annotated[StatedQuantities, QUANTITY] = NOTHING_STATED
    summaries: Annotated[
        tuple[str, ...],
        SUMMARY.with_help(
            "The output of kubectl get --raw /api/v1/nodes/NODE/proxy/stats/summary, from which Trimtab "
            "reads how full PersistentVolumeClaims are."
        ),
    ] = ()
    has_secrets: Annotated[
        bool, option("--secrets", help="Also check Secrets. Trimtab reads only the metadata of Secrets.")
    ] = False
    own_domains: Annotated[
        tuple[str, ...],
        option(
            "--own-domain",
            metavar="DOMAIN",
            help="A label domain of your organization by which no component selects objects, such as acme.example.",
        ),
    ] = ()
    balancer_price: Annotated[
        float | None,
        option(
            "--load-balancer-price",
            metavar="DOLLARS",
            type=click.FloatRange(min=0, min_open=True),
            help="The monthly cost of a load balancer, in dollars. Default: not known.",
        ),
    ] = None
    min_age_hours: Annotated[
        int, option("--min-age", metavar="HOURS", minimum=0, help="Leave out objects that are younger than this.")
    ] = 0
    zone: Annotated[
        str,
        option("--time-zone", metavar="ZONE", help="The IANA time zone for weekdays and hours, such as Europe/Berlin."),
    ] = "UTC"
    quiet_percent: Annotated[
        float | None,
        option(
            "--quiet-below",
            metavar="PERCENT",
            minimum=0,
            maximum=100,
            help="The usage, in percent of the request, up to which an hour counts as quiet. Default: 1; if the "
            "request is not known, 10 percent of the workload's own busy hours.",
        ),
    ] = None
    server_version: Annotated[
        str | None,
        SERVER_VERSION.with_help(
            "The Kubernetes version for which objects are proposed. From 1.37 on an HPA may scale to 0."
        ),
    ] = None
    now: Annotated[str | None, NOW_BY_CLOCK] = None
    prints_manifests: Annotated[bool, MANIFESTS] = False
    price_paths: Annotated[tuple[str, ...], PRICES] = ()
    output: ReportOutput


@click.command("idle")
@takes(IdleOptions)
def verb(options: IdleOptions) -> None:
    """Show which workloads could sleep, which claims are mostly empty, and which objects no pod names.

    "No pod names it" is not "unused": a program may read an object through the API. Objects with a sign of such a
    reader are listed separately. Secrets are left out unless --secrets is set, and then only their metadata is read.
    The command only reports: nothing is deleted or scaled.
    """
    selection = options.selection.parse()
    _check_options(options)
    manifests, notes = _read_objects(options.cluster, secrets=options.has_secrets)
    selection.check_namespaces(list_namespaces(manifests))
    prices, mistakes = read_price_sources(options.price_paths)
    current = _read_requests(manifests, prices)
    now, now_mistakes = parse_now(options.now)
    mistakes += now_mistakes
    if mistakes:
        raise UsageError(mistakes)
    orphans = find_orphans(
        manifests,
        own_domains=options.own_domains,
        min_age_seconds=options.min_age_hours * 3600,
        now=int(clock.utc_now().timestamp()) if now is None else now,
    )
    series, usage_notes = read_usage_series(options.usage, now, options.stated)
    share = None if options.quiet_percent is None else options.quiet_percent / 100
    # The workloads of Trimtab itself, which must not sleep.
    namespaces = own_namespaces(manifests)
    names = (name_of(manifest) for manifest in manifests if is_own(manifest, namespaces))
    own = frozenset(OwnerKey(namespace, GroupKind(kind), name) for kind, namespace, name in names)
    hourly = {
        workload: cores
        for workload, cores in _hourly_usage(series, current).items()
        if workload not in own and workload[0] != OWN_NAMESPACE
    }
    quiet, unknown = _find_all_quiet(hourly, current, options.zone, share)
    schedules, unreadable = read_sleep_schedules(manifests)
    if options.prints_manifests:
        proposed = _propose_objects(manifests, quiet, schedules, options.server_version)
        output.write_text(output.format_manifests(proposed), options.output.file)
        return
    costs = _monthly_costs(current)
    usages = []
    for file, content in live_cluster.read_paths(options.summaries, (".json",)):
        try:
            usages += [VolumeUsage(*claim) for claim in claims_of_summary(content)]
        except InvalidResponse as error:
            raise UsageError([ConfigError(file=file, expected="a kubelet's summary", got=str(error))]) from None
    claims = find_claim_savings(usages, manifests)
    report = IdleReport(
        zone=options.zone,
        checked=dict(orphans.checked),
        orphans=parts.build_orphan_rows(orphans, manifests, _node_costs(manifests, prices), options.balancer_price),
        unjudged=parts.build_unjudged_rows(orphans),
        sleepers=parts.build_sleeper_rows(quiet, costs),
        missed_sleep=parts.build_missed_rows(_find_all_missed(hourly, current, schedules, share), costs),
        claims=parts.build_claim_rows(claims),
        unknown=[
            *(
                parts.build_unknown_row("whether objects without a name are used", missing)
                for missing in orphans.unknown
            ),
            *unknown,
        ],
        notes=[
            *notes,
            *current.notes,
            *usage_notes,
            *_hints(options),
            *(f"This sleep schedule cannot be read: {problem}" for problem in unreadable),
        ],
    )
    report = select_rows(report, selection, manifests)
    write_report(options.output, report, VIEW)


def _check_options(options: IdleOptions) -> None:
    """Raises UsageError with every option that has no valid value."""
    mistakes = []
    try:
        ZoneInfo(options.zone)
    except (KeyError, OSError, ValueError):
        mistakes.append(ConfigError(file="--time-zone", expected="an IANA time zone", got=options.zone))
    version = options.server_version
    if version is not None and parse_minor_version(version) is None:
        mistakes.append(ConfigError(file="--server-version", expected="a version such as 1.37", got=version))
    if mistakes:
        raise UsageError(mistakes)


def _hints(options: IdleOptions) -> list[str]:
    """Returns a note for every part of the report that the user did not request, with the option that requests it."""
    return [
        text
        for is_requested, text in (
            (options.usage, "Without --usage Trimtab does not know which workloads could sleep."),
            (options.summaries, "Without --summary Trimtab does not know how full PersistentVolumeClaims are."),
            (
                options.has_secrets,
                "Secrets were not checked; with --secrets Trimtab reads their metadata and checks them.",
            ),
        )
        if not is_requested
    ]


def _read_objects(cluster: live_cluster.ClusterOptions, *, secrets: bool) -> tuple[list[Manifest], list[str]]:
    """Returns the metadata and content of all objects as JSON values; Secrets only if `secrets` is set, and of them
    only the metadata."""
    if not cluster.paths:
        raise UsageError([ConfigError(file="command line", expected="--cluster", got="none")])
    files = [path for path in cluster.paths if path != live_cluster.LIVE]
    documents, mistakes = parse_documents(live_cluster.read_paths(files))
    if mistakes:
        raise UsageError(mistakes)
    from trimtab.kube.whole_objects import metadata_of_secret

    manifests: list[Manifest] = []
    for document in documents:
        if document.kind != "Secret":
            manifests.append(document.value)
        elif secrets:
            manifests.append(metadata_of_secret(document.value))
    notes: list[str] = []
    if live_cluster.LIVE in cluster.paths:
        objects, notes = _read_live_objects(cluster, secrets=secrets)
        manifests += objects
    return manifests, notes


def _read_live_objects(cluster: live_cluster.ClusterOptions, *, secrets: bool) -> tuple[Sequence[Manifest], list[str]]:
    from trimtab.kube.client import connect_to_cluster
    from trimtab.kube.errors import KubeFault, NotConfigured
    from trimtab.kube.whole_objects import read_whole_objects

    try:
        client = connect_to_cluster(cluster.kubeconfig, cluster.context)
        try:
            whole = read_whole_objects(client, secrets=secrets)
        finally:
            client.close()
    except NotConfigured as error:
        raise LoginError(str(error)) from None
    except KubeFault as error:
        raise RuntimeFailure(str(error)) from None
    return whole.objects, [
        f"{problem}: objects that are used only by such objects may be reported as unused"
        for problem in whole.unreadable
    ]


def _read_requests(manifests: Iterable[Manifest], prices: PriceFile) -> CurrentRequests:
    documents = [Document(file="cluster", index=n, value=manifest) for n, manifest in enumerate(manifests)]
    built = build_snapshot(documents)
    current = read_current_requests(built.snapshot, documents, from_snapshot(built.snapshot), prices)
    current.notes += [f"The requests of this object cannot be read: {mistake}" for mistake in built.mistakes]
    return current


def _monthly_costs(current: CurrentRequests) -> dict[OwnerKey, float]:
    """Returns workload → the cost of its requests in dollars per month, at the average price of the nodes."""
    costs: dict[OwnerKey, float] = {}
    for key, container in current.containers.items():
        millicores, memory_bytes = (container.scheduler_amount("request", resource) or 0 for resource in RESOURCES)
        workload = key.owner
        dollars = current.price.monthly_cost(millicores, memory_bytes)
        costs[workload] = costs.get(workload, 0.0) + container.replicas * dollars
    return costs


def _node_costs(manifests: Iterable[Manifest], prices: PriceFile) -> dict[str, float]:
    """Returns node → dollars per month, for the nodes whose price is known."""
    from trimtab.cluster.api.core import Node
    from trimtab.cluster.node import node_from_api
    from trimtab.machines.prices import price_of
    from trimtab.sizing.cost import HOURS_PER_MONTH

    documents = [Document(file="cluster", index=0, value=one) for one in manifests if one.get("kind") == "Node"]
    costs = {}
    for shape in build_snapshot(documents).snapshot.objects_of(Node):
        node = node_from_api(shape)
        price = price_of(replace(node, price=prices.price_of(node)), {})
        if isinstance(price, int):
            costs[shape.metadata.name] = round(price * HOURS_PER_MONTH / 1e6, 2)
    return costs


def _hourly_usage(series: Iterable[Series], current: CurrentRequests) -> dict[OwnerKey, dict[int, float]]:
    """Returns workload → hour → the mean usage in cores. An hour without samples of this workload counts as 0 if other
    workloads have samples."""
    owners = current.owner_index()
    hourly: dict[OwnerKey, HourlyUsage] = {}
    for one in series:
        if one.resource == "cpu":
            key = container_key(one, owners)
            usage = hourly.setdefault(key.owner, HourlyUsage())
            usage.add_values(f"{one.pod}/{one.container}", one.times, one.values)
    observed = {hour for usage in hourly.values() for hour in usage.sums}
    return {workload: fill_absent_hours(usage.mean_cores(), observed) for workload, usage in sorted(hourly.items())}


def _find_all_quiet(
    hourly: Mapping[OwnerKey, Mapping[int, float]], current: CurrentRequests, zone: str, share: float | None
) -> tuple[dict[OwnerKey, QuietHours], list[parts.UnknownRow]]:
    quiet: dict[OwnerKey, QuietHours] = {}
    unknown = []
    requests = _requested_cores(current)
    for workload, cores in hourly.items():
        namespace, kind, name = workload
        if kind in _NEVER_SLEEPING:
            continue
        hours = find_quiet_hours(cores, zone=zone, request_cores=requests.get(workload), share=share)
        if isinstance(hours, NotYet):
            unknown.append(parts.build_unknown_row(f"when {kind} {namespace}/{name} could sleep", hours))
        else:
            quiet[workload] = hours
    return quiet, unknown


def _find_all_missed(
    hourly: Mapping[OwnerKey, Mapping[int, float]],
    current: CurrentRequests,
    schedules: Sequence[SleepSchedule],
    share: float | None,
) -> list[MissedSleep]:
    missed = []
    requests = _requested_cores(current)
    for workload, cores in hourly.items():
        for schedule in schedules:
            if schedule.covers_workload(workload):
                hours = find_quiet_hours(cores, zone=schedule.zone, request_cores=requests.get(workload), share=share)
                miss = None if isinstance(hours, NotYet) else find_missed_sleep(workload, schedule, hours)
                missed += [miss] if miss is not None else []
    return missed


def _requested_cores(current: CurrentRequests) -> dict[OwnerKey, float]:
    """Returns workload → the requested cores of all its pods; workloads without a request are missing."""
    cores: dict[OwnerKey, float] = {}
    for key, container in current.containers.items():
        workload = key.owner
        cores[workload] = (
            cores.get(workload, 0.0) + container.replicas * (container.scheduler_amount("request", "cpu") or 0) / 1000
        )
    return {workload: amount for workload, amount in cores.items() if amount > 0}


def _propose_objects(
    manifests: Sequence[Manifest],
    quiet: Mapping[OwnerKey, QuietHours],
    schedules: Sequence[SleepSchedule],
    version: str | None,
) -> list[dict[str, Any]]:
    autoscalers = [manifest for manifest in manifests if manifest.get("kind") == "HorizontalPodAutoscaler"]
    scaled = propose_scale_to_zero(quiet, autoscalers, parse_minor_version(version) if version else None)
    workloads = parts.manifest_names(manifests, SLEEPING_KINDS)
    namespaces = {schedule.namespace for schedule in schedules}
    return [*propose_sleep_infos(quiet, workloads, namespaces), *scaled]
