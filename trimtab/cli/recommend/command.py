"""The command line of `trimtab recommend`: it reads usage and current requests, and writes the report and its
exports."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import click
import msgspec

from trimtab.cli import output
from trimtab.cli.options import takes
from trimtab.cli.print_text import print_text
from trimtab.cli.recommend import comparison, export
from trimtab.cli.recommend.build_report import Selection, build_report
from trimtab.cli.recommend.options import RecommendOptions, parse_options
from trimtab.cli.recommend.report import RecommendReport
from trimtab.cli.recommend.table import VIEW
from trimtab.cli.reporting.emit import write_report
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import format_count
from trimtab.cluster.snapshot import build_snapshot
from trimtab.histogram.batch_history import BatchHistory, ContainerKey
from trimtab.histogram.oom_kills import OomKill
from trimtab.inputs import current_requests, live_cluster
from trimtab.inputs import usage_sources as sources
from trimtab.inputs.command_faults import RuntimeFailure, UsageError
from trimtab.inputs.plan_inputs import parse_documents
from trimtab.inputs.pod_level_subjects import list_lasting_containers
from trimtab.inputs.pod_sums import PodSums
from trimtab.inputs.price_sources import read_price_sources
from trimtab.inputs.replica_usage import LeaderUsage, list_replica_roles
from trimtab.policy import vpa_webhook
from trimtab.policy.cluster_facts import from_snapshot
from trimtab.policy.vpa_webhook import WebhookReach, reach_everywhere_if
from trimtab.runtime import clock
from trimtab.sizing.request import SizingSettings, compute_amount
from trimtab.sizing.statistics import UsageStatistics, summarize_usage
from trimtab.usage.cluster_label import Matchers
from trimtab.usage.metric_names import NOTHING_STATED, Quantity, StatedQuantities

CONFIGURATION = "MutatingWebhookConfiguration"
VPA_DOWN_NOTE = (
    "The VPA's webhook cannot change pods (no trusted configuration with a ready endpoint), so Trimtab "
    "recommends the 95th percentile of the usage instead of the 5th."
)
VPA_UNKNOWN_NOTE = (
    "You have no permission to read whether the VPA's webhook can change pods, so Trimtab recommends the 95th "
    "percentile of the usage instead of the 5th."
)


def read_vpa_reach(cluster: live_cluster.ClusterOptions) -> tuple[tuple[WebhookReach, ...], list[str]]:
    """Returns the pods that the VPA's webhook can change, and a note if there are none or if the login may not read it.

    P5 (the 5th percentile) is proposed only for pods that the VPA's webhook can change. For other pods, P95 is the safe
    request. Raises RuntimeFailure.
    """
    from trimtab.kube.client import connect_to_cluster
    from trimtab.kube.errors import KubeFault, NotAllowed

    try:
        client = connect_to_cluster(cluster.kubeconfig, cluster.context)
        try:
            able = _list_vpa_reach(client)
        finally:
            client.close()
    except NotAllowed:
        return (), [VPA_UNKNOWN_NOTE]
    except KubeFault as error:
        raise RuntimeFailure(str(error)) from None
    return able, [] if able else [VPA_DOWN_NOTE]


def _list_vpa_reach(client: Any) -> tuple[WebhookReach, ...]:
    from trimtab.kube.listing import iter_objects
    from trimtab.kube.resources import LIST_SOURCES, endpoint_slices

    webhooks = {
        key: vpa_webhook.find_vpa_targets(shape) for key, shape in iter_objects(client, LIST_SOURCES[CONFIGURATION])
    }
    sources = [endpoint_slices(service) for service in vpa_webhook.target_services(webhooks)]
    slices = {
        key: vpa_webhook.retain_endpoints(shape) for source in sources for key, shape in iter_objects(client, source)
    }
    return vpa_webhook.find_webhook_reach(webhooks, slices)


def _render_page(report: RecommendReport) -> str:
    from trimtab.cli.recommend.page import render_page  # a page needs templates, and a table does not

    return render_page(report)


_VIEW = replace(VIEW, texts={"html": _render_page, "krr-csv": export.format_krr_csv})


@click.command("recommend")
@takes(RecommendOptions)
def verb(options: RecommendOptions) -> None:
    """Recommend requests for every container from its usage, with the savings and the confidence.

    A static request is computed by --rule; if a VPA sizes the running pod, the request is P5. For memory, the peaks of
    every six hours count. Current requests, replicas, VPAs, HPAs and prices come from --cluster. The command changes
    nothing.
    """
    question, headers = parse_options(options)
    cluster, source, exports = options.cluster, options.source, options.export
    against, url = options.choice.against, source.url
    earlier = comparison.read_earlier_report(against) if against else None
    now_seconds, settings = question.now, question.settings
    current = _read_current_requests(cluster, options.sizing.vpa_down, options.price_paths)
    owners = current.owner_index()

    def create_history() -> BatchHistory:
        return BatchHistory(
            source.days + 1, start_seconds=source.start_up
        )  # this many times 24 hours overlap one more calendar day

    histories = sources.UsageHistories(create_history, Matchers.from_text(source.matcher), source.by)
    if question.pod_level:
        histories.pod_sums = PodSums(list_lasting_containers(current))
    # A single number has the unit of its series, whatever that is; without a statement it is computed as cpu.
    stated = source.stated
    if exports.prints_number and stated == NOTHING_STATED:
        stated = StatedQuantities(Quantity.CORES)
    roles = list_replica_roles(current.pods, current.labels)
    # Where several clusters are divided by a label, a pod's name says nothing about its role in the other clusters.
    if roles and not source.by:
        histories.replica_usage = LeaderUsage(roles, create_history())
    notes = sources.add_files(histories, source.paths, owners, now_seconds, stated)
    if url is not None:
        server = sources.PrometheusOptions(
            url=url,
            headers=headers,
            ca=source.login.ca,
            certificate=source.certificate,
            key=source.key,
            days=source.days,
            step=source.step,
            rate=source.rate,
            namespaces=_namespaces(question.selection, current),
            extra=source.matcher,
            names=source.names.parse(),
            at_once=source.at_once,
        )
        now_seconds = now_seconds if now_seconds is not None else int(clock.utc_now().timestamp())
        notes += sources.add_prometheus(histories, server, owners, now_seconds)
    book = histories.get_history() if not source.by else create_history()
    pod_history = create_history() if histories.pod_sums is not None else None
    if histories.pod_sums is not None and pod_history is not None:
        histories.pod_sums.add_to_history(pod_history)
    # Kills in the status of pods come last, so that those that Prometheus has are not counted twice.
    _add_oom_kills(book, current.kills)
    for history in histories.histories.values():
        notes += sources.note_ignored_samples(history)
        notes += sources.note_missing_cpu(history, source.rate) if url is not None else []
    has_only_cluster = live_cluster.LIVE in cluster.paths and not source.paths and url is None
    notes += sources.add_cluster_usage(book, cluster, owners, kubelets=source.kubelets) if has_only_cluster else []
    notes += [
        f"{container} used up to {cores:.2f} cores during its start, which the recommendation ignores."
        for container, cores in sorted(book.max_start_cpu.items())
        if cores
    ]
    if not any(history.dense_windows or history.vpa_recommendations for history in histories.histories.values()):
        notes.append("No usage was found. Check the source, --namespace, --matcher, --days and --now.")
    if exports.prints_number:
        output.write_text(_format_number(book, settings), options.output.file)
        return
    recommend_report = build_report(
        histories.histories,
        histories.runs,
        current,
        replace(question, now=now_seconds, pod_history=pod_history, replica_usage=histories.replica_usage),
        notes,
    )
    if earlier is not None:
        recommend_report = msgspec.structs.replace(
            recommend_report, against=comparison.compare_reports(earlier, recommend_report, question)
        )
    if exports.folder:
        patches = export.write_patches(recommend_report, exports.folder, exports.min_confidence, current)
        _print_patches(patches, exports.folder, exports.min_confidence)
    if exports.vpa_checkpoints:
        exported = export.build_vpa_checkpoints(book, current)
        output.write_text(output.format_manifests(exported), exports.vpa_checkpoints)
        print_text(f"Wrote {format_count(len(exported), 'checkpoint')} to {exports.vpa_checkpoints}", err=True)
    write_report(options.output, recommend_report, _VIEW)


def _print_patches(patches: export.WrittenPatches, folder: str, min_confidence: float) -> None:
    count = format_count(len(patches.files), "patch", "patches")
    print_text(f"Wrote {count} and a kustomization.yaml to the folder {folder}", err=True)
    if patches.unmergeable:
        print_text(
            "These workloads get no patch, because kustomize cannot merge their containers: "
            f"{', '.join(patches.unmergeable)}",
            err=True,
        )
    if patches.doubtful:
        why = f"less than {min_confidence:.0%} confidence (--min-confidence)"
        print_text(f"These requests are not lowered, because they have {why}: {', '.join(patches.doubtful)}", err=True)
    for sentence in patches.refused:
        print_text(f"This request has no patch: {sentence}", err=True)


def _read_current_requests(
    cluster: live_cluster.ClusterOptions, vpa_down: bool, price_paths: Sequence[str]
) -> current_requests.CurrentRequests:
    prices, price_mistakes = read_price_sources(price_paths)
    if not cluster.paths:
        return current_requests.CurrentRequests(
            notes=["Without --cluster Trimtab does not know the present requests, and computes no saving."]
        )
    documents, mistakes = parse_documents(live_cluster.read_live_objects(cluster))
    snapshot_build = build_snapshot(documents)
    if mistakes or snapshot_build.mistakes or price_mistakes:
        raise UsageError([*mistakes, *snapshot_build.mistakes, *price_mistakes])
    reach, notes = reach_everywhere_if(not vpa_down), list[str]()
    if reach and live_cluster.LIVE in cluster.paths and snapshot_build.snapshot.objects.get("VerticalPodAutoscaler"):
        reach, notes = read_vpa_reach(cluster)
    current = current_requests.read_current_requests(
        snapshot_build.snapshot, documents, from_snapshot(snapshot_build.snapshot, vpa_reach=reach), prices
    )
    current.notes += notes
    return current


def _namespaces(selection: Selection, current: current_requests.CurrentRequests) -> tuple[str, ...]:
    """Returns the namespaces whose usage must be read: the namespaces with a selected container. An empty tuple stands
    for all namespaces."""
    if not selection.labels:
        return tuple(sorted(selection.namespaces))
    return tuple(
        sorted(
            {
                container.namespace
                for container, current_container in current.containers.items()
                if selection.includes_container(container, current_container)
            }
        )
    )


def _add_oom_kills(history: BatchHistory, kills: Iterable[tuple[ContainerKey, OomKill]]) -> None:
    """Add the OOM kills in the status of pods to the history.

    A kill that Prometheus also reports is counted once, but its amount of memory is still added."""
    earlier_records = dict(history.oom_records)
    for container, kill in kills:
        history.add_oom_kill(container, kill)
        earlier, record = earlier_records.get(container), history.oom_records[container]
        if earlier is not None and kill.at <= earlier.last:
            history.oom_records[container] = replace(record, count=record.count - 1)


def _format_number(history: BatchHistory, terms: SizingSettings) -> str:
    """Returns the recommended request for the only series. Raises UsageError if there are several series, or if the
    series is too short."""
    statistics = [
        summarize_usage(
            resource,
            history.compressed_window(container, resource),
            kind=container.kind,
            percentiles=terms.extra_percentiles(resource),
        )
        for container, resource in history.dense_windows
    ]
    if len(statistics) != 1 or not isinstance(statistics[0], UsageStatistics):
        got = f"{len(statistics)} series" if len(statistics) != 1 else str(statistics[0])
        todo = "if the values are bytes, say --quantity bytes" if history.dropped_values else ""
        raise UsageError([ConfigError(file="--usage", expected="one series", got=got, todo=todo)])
    return f"{compute_amount(terms.rule_of(statistics[0].resource), statistics[0])!r}\n"
