"""Can the VPA's webhook of a live cluster act? P5 is proposed only where it can.

`trimtab recommend`: what should every container ask for, judging by what it used?
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import click
import msgspec

from trimtab.cli import live_cluster, output
from trimtab.cli.main import RuntimeFailure, UsageError
from trimtab.cli.plan.inputs import documents
from trimtab.cli.recommend import comparison, current_requests, export, options, sources
from trimtab.cli.recommend.build_report import Selection, report
from trimtab.cli.recommend.options import options as recommend_options
from trimtab.cli.recommend.page import page
from trimtab.cli.recommend.report import RecommendReport
from trimtab.cli.recommend.table import as_csv, draw
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.snapshot import build
from trimtab.histogram.batch_history import BatchHistory, ContainerKey
from trimtab.histogram.oom_kills import OomKill
from trimtab.policy import vpa_webhook
from trimtab.policy.cluster_facts import from_snapshot
from trimtab.policy.vpa_webhook import WebhookReach, anywhere
from trimtab.runtime import clock
from trimtab.sizing.request import SizingSettings, amount
from trimtab.sizing.statistics import UsageStatistics, seen
from trimtab.usage.cluster_label import Matchers
from trimtab.usage.owners import OwnerIndex

CONFIGURATION, SLICE = "MutatingWebhookConfiguration", "EndpointSlice"
DOWN = "The VPA's webhook cannot act (no trusted configuration with a ready endpoint): P95 instead of P5."
HIDDEN = "Whether the VPA's webhook can act may not be looked at with these rights: P95 instead of P5."


def autoscaler_reach(cluster: live_cluster.ClusterOptions) -> tuple[tuple[WebhookReach, ...], list[str]]:
    """Which pods it can act on; a note where that is none, or where it may not be looked at: P95 is the safe number
    then. Raises Failed."""
    from trimtab.kube.client import connect
    from trimtab.kube.errors import KubeFault, NotAllowed

    try:
        client = connect(cluster.kubeconfig, cluster.context)
        try:
            able = _asked(client)
        finally:
            client.close()
    except NotAllowed:
        return (), [HIDDEN]
    except KubeFault as error:
        raise RuntimeFailure(str(error)) from None
    return able, [] if able else [DOWN]


def _asked(client: Any) -> tuple[WebhookReach, ...]:
    from trimtab.kube.listing import listed
    from trimtab.kube.resources import PLACES

    called = {key: vpa_webhook.called(found) for key, found in listed(client, PLACES[CONFIGURATION])}
    sources = [replace(PLACES[SLICE], namespace=namespace, labels=f"{vpa_webhook.SERVICE_LABEL}={name}")
               for namespace, name in vpa_webhook.services(called)]  # fmt: skip
    slices = {key: vpa_webhook.endpoints(found) for source in sources for key, found in listed(client, source)}
    return vpa_webhook.reach(called, slices)


@click.command("recommend")
@live_cluster.options
@recommend_options
def verb(
    cluster: live_cluster.ClusterOptions, paths: tuple[str, ...], url: str | None, now: str | None, **more: Any
) -> None:
    """What should every container ask for, judging by what it used; what would that save, and how sure is it?

    By --rule where the request is static, P5 where a VPA takes over; memory by the peaks of six hours. What is asked
    for now, replicas, VPAs, HPAs and prices come from --cluster. Changes nothing.
    """
    question, headers = options.checked(cluster, paths, url, now, more)
    earlier = comparison.read(more["against"]) if more["against"] else None
    at, terms = question.now, question.terms
    found = _standing(cluster, more["vpa_down"])
    owners = OwnerIndex(found.pods, found.workloads)

    def make() -> BatchHistory:
        return BatchHistory(
            more["days"] + 1, start_up=more["start_up"]
        )  # so many times 24 hours touch one calendar day more

    books = sources.UsageHistories(make, Matchers.of(more["matcher"]), more["by"])
    notes = sources.from_files(books, paths, owners, at)
    if url is not None:
        server = sources.PrometheusOptions(url=url, headers=headers, ca=more["ca"], certificate=more["certificate"],
                                key=more["key"], days=more["days"], step=more["step"], rate=more["rate"],
                                namespaces=_namespaces(question.selection, found), extra=more["matcher"],
                                names=options.names_of(more), at_once=more["at_once"])  # fmt: skip
        at = at if at is not None else int(clock.utc().timestamp())
        sources.from_prometheus(books, server, owners, at)
    book = books.book() if not more["by"] else make()
    _add_kills(book, found.kills)
    for each in books.all.values():
        notes += sources.left_out(each)
        notes += sources.unseen(each, more["rate"]) if url is not None else []
    alone = live_cluster.LIVE in cluster.paths and not paths and url is None
    notes += sources.add(book, cluster, owners, kubelets=more["kubelets"]) if alone else []
    notes += [f"{container}: its start took up to {most:.2f} cores, which is left out."
              for container, most in sorted(book.starts.items()) if most]  # fmt: skip
    if not any(each.pages or each.advice for each in books.all.values()):
        notes.append("No usage was found: look at the source, --namespace, --matcher, --days and --now.")
    if more["number"]:
        output.write(_number(book, terms), more["output_file"])
        return
    told = report(books.all, books.runs, found, replace(question, now=at), notes)
    if earlier is not None:
        told = msgspec.structs.replace(told, against=comparison.compared(earlier, told, question))
    if more["folder"]:
        written, others, doubtful = export.write(told, more["folder"], more["min_confidence"])
        count = f"{len(written)} patch{'' if len(written) == 1 else 'es'}"
        click.echo(f"{count} and a kustomization.yaml in {more['folder']}", err=True)
        if others:
            click.echo(f"No patch, since kustomize cannot merge their containers: {', '.join(others)}", err=True)
        if doubtful:
            why = f"less than {more['min_confidence']:.0%} sure (--min-confidence)"
            click.echo(f"Not lowered, since it is {why}: {', '.join(doubtful)}", err=True)
    if more["export"]:
        exported = export.checkpoints(book, found)
        output.write(export.text(exported), more["export"])
        click.echo(f"{len(exported)} checkpoints in {more['export']}", err=True)
    _emit(more["form"], more["output_file"], told)


def _standing(cluster: live_cluster.ClusterOptions, vpa_down: bool) -> current_requests.CurrentRequests:
    if not cluster.paths:
        return current_requests.CurrentRequests(
            notes=["No --cluster: what is asked for now is not known, and nothing is saved or spent."]
        )
    found, mistakes = documents(live_cluster.read_live_objects(cluster))
    built = build(found)
    if mistakes or built.mistakes:
        raise UsageError([*mistakes, *built.mistakes])
    reach, notes = anywhere(not vpa_down), list[str]()
    if reach and live_cluster.LIVE in cluster.paths and built.snapshot.objects.get("VerticalPodAutoscaler"):
        reach, notes = autoscaler_reach(cluster)
    stands = current_requests.stands(built.snapshot, found, from_snapshot(built.snapshot, vpa_reach=reach))
    stands.notes += notes
    return stands


def _namespaces(selection: Selection, found: current_requests.CurrentRequests) -> tuple[str, ...]:
    """The namespaces whose usage is read: those that hold what is selected; none where all of them do."""
    if not selection.labels:
        return tuple(sorted(selection.namespaces))
    return tuple(sorted({one.namespace for one, held in found.standing.items() if selection.includes(one, held)}))


def _add_kills(book: BatchHistory, kills: Iterable[tuple[ContainerKey, OomKill]]) -> None:
    """Kills that pods tell, without counting again those that Prometheus told: only the amounts may be better known."""
    told = dict(book.oom_records)
    for container, kill in kills:
        book.kill(container, kill)
        known, record = told.get(container), book.oom_records[container]
        if known is not None and kill.at <= known.last:
            book.oom_records[container] = replace(record, count=record.count - 1)


def _number(book: BatchHistory, terms: SizingSettings) -> str:
    """Of the one series there is. Raises Wrong where there are more, or where it is too short."""
    known = [seen(resource, book.window(one, resource), kind=one.kind, percentiles=terms.percentiles(resource))
             for one, resource in book.pages]  # fmt: skip
    if len(known) != 1 or not isinstance(known[0], UsageStatistics):
        got = f"{len(known)} series" if len(known) != 1 else str(known[0])
        raise UsageError([ConfigError(file="--usage", expected="one series of a day at least", got=got)])
    return f"{amount(terms.rule_of(known[0].resource), known[0])!r}\n"


def _emit(form: str, output_file: str | None, told: RecommendReport) -> None:
    if form in ("csv", "krr-csv"):
        output.write((export.as_csv if form == "krr-csv" else as_csv)(told), output_file)
        return
    title = "trimtab recommend"
    output.emit(form, output_file, told, lambda console: draw(console, told), title, page=lambda: page(told))
