"""The command line of `trimtab drain`: it plans an order, shows it, and carries it out; or resumes or releases one."""

from __future__ import annotations

import secrets
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Annotated

import click

from trimtab.cli.complete_names import complete_nodes
from trimtab.cli.drain.events import print_event
from trimtab.cli.drain.report import VIEW, build_drain_report, describe_missing
from trimtab.cli.drain.through_compactor import OrderFollower, create_order, describe_release
from trimtab.cli.main import EXIT_FAILED, EXIT_FOUND
from trimtab.cli.options import takes
from trimtab.cli.output import show_spinner
from trimtab.cli.print_text import print_text
from trimtab.cli.reporting.emit import ReportOutput, write_report
from trimtab.cli.since import parse_age
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import format_count, join_first
from trimtab.cluster.pool import MAX_SURGE
from trimtab.cluster.timestamps import Seconds, format_timestamp, parse_timestamp
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compaction.order.order_object import OrderSpec, Phase
from trimtab.compaction.order.order_plan import OrderPlan, plan_order
from trimtab.compaction.order.order_round import DrainOrder, OrderPhase, OrderRound
from trimtab.compaction.order.order_rules import OrderRules
from trimtab.compaction.order.record import MAX_TEXT, OrderRecord
from trimtab.compactor.order.order_reader import OrderReader, create_order_informers
from trimtab.compactor.order.order_rights import list_missing_rights, read_own_identity
from trimtab.compactor.order.order_runner import OrderRunner
from trimtab.compactor.order.order_steps import OrderEvent
from trimtab.compactor.order.order_writes import order_writer
from trimtab.compactor.settings import Settings
from trimtab.inputs import flags, order_records, plan_inputs
from trimtab.inputs.command_faults import RuntimeFailure, UsageError
from trimtab.inputs.live_cluster import LIVE, ClusterOptions, connect_live
from trimtab.inputs.option import Argument, duration_option, option
from trimtab.inputs.order_records import OrderedNode
from trimtab.inputs.order_targets import choose_order_nodes
from trimtab.inputs.plan_inputs import PlanInputs, PlanOptions
from trimtab.kube.client import Client
from trimtab.kube.errors import KubeFault
from trimtab.runtime import clock
from trimtab.scheduling.cluster_model import build_cluster_model

SYNC_SECONDS = 60.0
MAX_NAMED_NODES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainOptions:
    """The options of `trimtab drain`."""

    names: Annotated[tuple[str, ...], Argument("[NODE]...", is_required=False, complete=complete_nodes)] = ()
    selector: Annotated[
        str | None, flags.SELECTOR.with_help("Drain the nodes with these labels, in kubectl's syntax.")
    ] = None
    pool: Annotated[str | None, flags.POOL.with_help("Drain the nodes of this pool.")] = None
    dry_run: Annotated[bool, flags.DRY_RUN] = False
    at_once: Annotated[int, flags.AT_ONCE.with_help("How many nodes are drained at the same time.")] = 1
    force: Annotated[
        bool, flags.FORCE.with_help("Also evict pods without a controller, which are then gone for good.")
    ] = False
    delete_emptydir_data: Annotated[
        bool, option("--delete-emptydir-data", help="Also evict pods with an emptyDir on disk, whose data is lost.")
    ] = False
    override_protection: Annotated[
        bool,
        option(
            "--override-protection",
            help="Also drain nodes and evict pods that an annotation protects, and stop groups of pods.",
        ),
    ] = False
    keep_going: Annotated[
        bool, option("--keep-going", help="Drain the nodes that can be drained, even if others cannot.")
    ] = False
    surge_pods: Annotated[
        int,
        option(
            "--surge-pods",
            minimum=0,
            maximum=MAX_SURGE,
            help="How many more pods a Deployment may have for a while, if its budget allows no eviction otherwise.",
        ),
    ] = 0
    until: Annotated[
        str | None,
        option("--until", metavar="TIME", help="Begin no further node after this time, in RFC 3339."),
    ] = None
    timeout: Annotated[
        str | None,
        duration_option("--timeout", help="Evict nothing after this time, such as 30m. Default: no limit."),
    ] = None
    pod_timeout: Annotated[
        str,
        duration_option(
            "--pod-timeout",
            help="How long a pod may still exist after its grace period, and a successor may take until it is ready.",
        ),
    ] = "5m"
    why: Annotated[str, flags.WHY.with_help("The reason, which other users see on the nodes.")] = ""
    resume: Annotated[
        bool, option("--resume", help="Go on with an order that was stopped, also one of another user.")
    ] = False
    release: Annotated[
        bool, option("--release", help="Show which nodes orders have cordoned; with --yes, uncordon them.")
    ] = False
    yes: Annotated[bool, flags.YES.with_help("Uncordon the nodes that --release shows.")] = False
    through_compactor: Annotated[
        bool,
        option("--through-compactor", help="Let the compactor drain the nodes: create a DrainOrder, and follow it."),
    ] = False
    namespace: Annotated[
        str | None,
        flags.SYSTEM_NAMESPACE.with_help(
            f"The namespace in which Trimtab is installed. Default: {Settings().namespace}."
        ),
    ] = None
    cluster: ClusterOptions
    output: ReportOutput

    @property
    def rules(self) -> OrderRules:
        """What the user permits."""
        return OrderRules(
            evicts_bare_pods=self.force,
            deletes_local_data=self.delete_emptydir_data,
            overrides_protection=self.override_protection,
            keeps_going=self.keep_going,
            surge_pods=self.surge_pods,
            at_once=self.at_once,
        )

    @property
    def live_cluster(self) -> ClusterOptions:
        """The cluster options, with the live cluster if no snapshot is named."""
        return ClusterOptions(self.cluster.paths or (LIVE,), self.cluster.kubeconfig, self.cluster.context)


@click.command("drain")
@takes(DrainOptions)
def verb(options: DrainOptions) -> None:
    """Drain nodes within their budgets, one wave after the other; --dry-run shows what would happen.

    First the whole order is planned: a place for every pod on the nodes outside the order, the budgets, the pods that
    cannot move and what would permit it. If not every node can be emptied, nothing begins. Then all nodes are cordoned,
    so that no pod moves twice, and emptied in waves, each of which begins when the successors of the previous one are
    ready. The first Ctrl-C stops further evictions and waits for those that were made; the second one does not wait.

    Exit codes: 0 all nodes are empty; 1 with --dry-run, the order would not begin; 2 the command line has a mistake;
    3 nothing was begun, or not all nodes are empty.
    """
    _check_options(options)
    if options.release:
        _release(options)
        return
    until, limits = _read_times(options)
    resumed = order_records.read_order_to_resume(options.live_cluster, options.names) if options.resume else None
    with show_spinner("Planning"):
        inputs = plan_inputs.read_inputs(PlanOptions(cluster=options.live_cluster))
        names = (
            resumed.nodes
            if resumed is not None
            else choose_order_nodes(inputs.inventory.nodes, inputs.pools, options.names, options.selector, options.pool)
        )
        now = int(clock.utc_now().timestamp()) if LIVE in options.live_cluster.paths else None
        emptied = resumed.emptied if resumed is not None else frozenset()
        rest = [name for name in names if name not in emptied]
        model = build_cluster_model(inputs.inventory, inputs.readmitted_requests)
        name = resumed.name if resumed is not None else secrets.token_hex(5)
        plan = plan_order(model, rest, options.rules, now, names, name, pools=inputs.pools)
    report = build_drain_report(plan, rest, options.rules, [*(resumed.notes if resumed else ()), *inputs.cluster_notes])
    if options.dry_run:
        write_report(options.output, report, VIEW)
        sys.exit(0 if report.may_begin or not rest else EXIT_FOUND)
    as_json = options.output.form == "json"
    if not as_json:
        write_report(options.output, report, VIEW)
    if rest and not report.may_begin:
        problems = list(dict.fromkeys(reason.sentence for reason in plan.refusals.values()))
        missing = [describe_missing(report.missing)] if report.missing is not None else []
        raise RuntimeFailure("\n".join([*problems, *missing, "Nothing was begun."]))
    assert now is not None
    if options.through_compactor:
        _hand_over(options, name, names)
        return
    order = DrainOrder(
        name=name,
        nodes=names,
        since=resumed.since if resumed is not None else now,
        why=options.why or (resumed.why if resumed is not None else ""),
        rules=options.rules,
        until=until,
        deadline=None if limits.timeout is None else now + limits.timeout,
    )
    _carry_out(options, order, limits.timeouts, inputs, plan)


@dataclass(frozen=True, slots=True)
class _Limits:
    timeout: int | None
    timeouts: DrainTimeouts


def _check_options(options: DrainOptions) -> None:
    """Raises UsageError if options contradict each other."""
    mistakes: list[ConfigError] = []

    def refuse(expected: str, got: str) -> None:
        mistakes.append(ConfigError(file="command line", expected=expected, got=got))

    if options.resume and options.release:
        refuse("--resume or --release", "both")
    if (options.resume or options.release) and (options.selector is not None or options.pool is not None):
        refuse("names of nodes with --resume and --release", "--selector or --pool")
    if options.through_compactor and (options.resume or options.release):
        refuse("--resume and --release without --through-compactor", "both: an order is deleted to release its nodes")
    if options.namespace is not None and not options.through_compactor:
        refuse("--system-namespace with --through-compactor", "--system-namespace alone")
    if options.surge_pods and options.through_compactor:
        refuse("--surge-pods without --through-compactor", "both: a DrainOrder gives no Deployment more pods")
    if options.yes and not options.release:
        refuse("--yes with --release", "--yes alone")
    if options.yes and options.dry_run:
        refuse("--yes or --dry-run", "both")
    if len(options.why) > MAX_TEXT:
        refuse(f"at most {MAX_TEXT} characters in --why", str(len(options.why)))
    is_live = LIVE in options.live_cluster.paths
    if not options.dry_run and not is_live:
        refuse("--dry-run with a snapshot, because a file cannot be drained", "no --dry-run")
    if (options.resume or options.release) and not is_live:
        refuse("the live cluster with --resume and --release", "a snapshot")
    if (options.release or not options.dry_run) and options.output.form not in ("table", "wide", "json"):
        refuse("-o table, wide or json without --dry-run", options.output.form)
    if mistakes:
        raise UsageError(mistakes)


def _read_times(options: DrainOptions) -> tuple[Seconds | None, _Limits]:
    """Returns the time of --until, and the limits. Raises UsageError."""
    mistakes: list[ConfigError] = []

    def read(flag: str, text: str | None) -> int | None:
        seconds = None if text is None else parse_age(text)
        if text is not None and seconds is None:
            mistakes.append(ConfigError(file=flag, expected="a duration such as 90s, 30m or 2h", got=text))
        return seconds

    until = parse_timestamp(options.until)
    if options.until is not None and until is None:
        expected = "a time such as 2026-01-02T15:04:05Z"
        mistakes.append(ConfigError(file="--until", expected=expected, got=options.until))
    timeout = read("--timeout", options.timeout)
    pod = read("--pod-timeout", options.pod_timeout)
    if mistakes:
        raise UsageError(mistakes)
    assert pod is not None
    return until, _Limits(timeout, DrainTimeouts(ready=pod, pending=pod, end=pod))


class _StopRequest:
    """Whether the user has asked to stop. The second request ends the command at once."""

    def __init__(self) -> None:
        self.is_requested = False

    def request(self, *_: object) -> None:
        """Requests the stop, as the handler of a signal."""
        if self.is_requested:
            raise KeyboardInterrupt
        self.is_requested = True
        print_text("Stopping: no further pod is evicted. Again Ctrl-C: do not wait.", err=True)


@contextmanager
def _stops_on_signals() -> Iterator[_StopRequest]:
    stop = _StopRequest()
    before = {number: signal.signal(number, stop.request) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _carry_out(
    options: DrainOptions, order: DrainOrder, timeouts: DrainTimeouts, inputs: PlanInputs, plan: OrderPlan
) -> None:
    """Carries the order out, and ends the command with its exit code."""
    as_json = options.output.form == "json"

    def report(event: OrderEvent) -> None:
        print_event(event, order.name, as_json=as_json)

    def now() -> Seconds:
        return int(clock.utc_now().timestamp())

    with _stops_on_signals() as stop, connect_live(options.live_cluster) as client:
        _check_rights(client, plan)
        order = _with_author(order, client)
        report(OrderEvent(at=now(), what="planned", text=_describe_order(order, plan)))
        with create_order_informers(client) as watch:
            if not watch.wait_until_synced(SYNC_SECONDS):
                problems = "; ".join(f"{name}: {error}" for name, error in watch.errors_by_list().items())
                raise RuntimeFailure(f"the cluster could not be read: {problems or 'no answer'}\nNothing was begun.")
            runner = OrderRunner(
                order=order,
                reader=OrderReader(watch, now, inputs.inventory.schedulers),
                writer=order_writer(client),
                timeouts=timeouts,
                report=report,
                wait=time.sleep,
                elapsed=clock.elapsed_seconds,
                is_stopping=lambda: stop.is_requested,
                readmitted_requests=inputs.readmitted_requests,
            )
            try:
                last = runner.run()
            except KeyboardInterrupt:
                print_text(f"The command ended without waiting. {_describe_cordons(runner.cordoned)}", err=True)
                sys.exit(EXIT_FAILED)
            except KubeFault as error:
                raise RuntimeFailure(f"{error}\n{_describe_cordons(runner.cordoned)}") from None
    sentence = _describe_end(last)
    report(OrderEvent(at=now(), what="done" if last.is_done else "ended", text=sentence))
    if not last.is_done:
        sys.exit(EXIT_FAILED)


def _hand_over(options: DrainOptions, name: str, nodes: Sequence[str]) -> None:
    """Lets the compactor carry the order out, and ends the command with its exit code."""
    namespace, order = options.namespace or Settings().namespace, f"drain-{name}"
    spec = OrderSpec(
        nodes=tuple(nodes),
        by="-",
        why=options.why,
        at_once=options.at_once,
        keep_going=options.keep_going,
        force=options.force,
        delete_empty_dir_data=options.delete_emptydir_data,
        override_protection=options.override_protection,
        # In the form that the definition of DrainOrder permits.
        until=format_timestamp(until) if (until := parse_timestamp(options.until)) is not None else "",
        timeout=_format_seconds(options.timeout),
        pod_timeout=_format_seconds(options.pod_timeout),
    )

    def now() -> Seconds:
        return int(clock.utc_now().timestamp())

    def report(event: OrderEvent) -> None:
        print_event(event, order, as_json=options.output.form == "json")

    with connect_live(options.live_cluster) as client:
        if note := create_order(client, namespace, order, spec, now()):
            print_text(note, err=True)
        ends = describe_release(namespace, order)
        report(OrderEvent(at=now(), what="planned", text=f"DrainOrder {namespace}/{order} was created; {ends}"))
        try:
            status = OrderFollower(client, namespace, order, report, now).follow()
        except KeyboardInterrupt:
            print_text(f"The compactor goes on with the order; {ends}.", err=True)
            sys.exit(EXIT_FAILED)
        except KubeFault as error:
            raise RuntimeFailure(f"{error}\nThe compactor goes on with the order; {ends}.") from None
    is_done = status.phase == Phase.DONE
    report(OrderEvent(at=now(), what="done" if is_done else "ended", text=f"{status.message}; {ends}"))
    if not is_done:
        sys.exit(EXIT_FAILED)


def _format_seconds(text: str | None) -> str:
    """Returns the value of an option as a duration of Kubernetes; empty if there is none."""
    seconds = parse_age(text) if text is not None else None
    if seconds is None:
        return ""
    return f"{seconds}s" if seconds < 1_000_000 else f"{seconds // 3600}h"


def _check_rights(client: Client, plan: OrderPlan) -> None:
    namespaces = {move.pod.partition("/")[0] for step in plan.steps for move in step.moves}
    if missing := list_missing_rights(client, namespaces, plan.surges):
        raise RuntimeFailure("\n".join(["The login lacks rights that a drain needs:", *missing, "Nothing was begun."]))


def _with_author(order: DrainOrder, client: Client) -> DrainOrder:
    return replace(order, by=read_own_identity(client).name[:MAX_TEXT])


def _describe_order(order: DrainOrder, plan: OrderPlan) -> str:
    evictions = sum(len(step.moves) for step in plan.steps)
    return (
        f"order {order.name}: {format_count(len(order.nodes), 'node')}, {format_count(evictions, 'eviction')} in "
        f"{format_count(len(plan.waves), 'wave')}"
    )


def _describe_end(last: OrderRound) -> str:
    if last.is_done:
        left = [name for name, phase in last.phases.items() if phase is OrderPhase.LEFT]
        subject = (
            f"{join_first(left, MAX_NAMED_NODES)} left to other clients; the other nodes"
            if left
            else "all nodes of the order"
        )
        return f"{subject} are empty and stay cordoned; `trimtab drain --release` uncordons them"
    rest = [name for name, phase in last.phases.items() if phase not in (OrderPhase.EMPTY, OrderPhase.LEFT)]
    return (
        f"{format_count(len(rest), 'node is', 'nodes are')} not empty: {join_first(rest, MAX_NAMED_NODES)}. "
        f"{_describe_cordons(last.cordoned)}"
    )


def _describe_cordons(names: Sequence[str]) -> str:
    """Returns a sentence about the nodes that stay cordoned, and how to go on."""
    if not names:
        return "No node is cordoned by the order."
    return (
        f"{format_count(len(names), 'node stays', 'nodes stay')} cordoned: {join_first(names, MAX_NAMED_NODES)}; "
        "`trimtab drain --resume` goes on, and `trimtab drain --release` uncordons"
    )


def _release(options: DrainOptions) -> None:
    """Shows what the orders on these nodes have done, and with --yes undoes it."""
    with connect_live(options.live_cluster) as client:
        ordered = order_records.find_ordered_nodes(client, options.names)
        for node in ordered:
            _print_release(options, "recorded", node, str(node))
        if options.yes:
            for node, outcome in order_records.release_ordered_nodes(client, ordered):
                _print_release(options, "released", node, outcome)
    if options.output.form != "json" and not ordered:
        print_text("no node has a record of an order")
    elif options.output.form != "json" and not options.yes:
        print_text("Nothing was changed. To undo this, run the command with --yes.")


def _print_release(options: DrainOptions, what: str, node: OrderedNode, text: str) -> None:
    if options.output.form != "json":
        print_text(text)
        return
    event = OrderEvent(at=int(clock.utc_now().timestamp()), what=what, node=node.node.name, text=text)
    print_event(event, node.record.order if isinstance(node.record, OrderRecord) else "", as_json=True)
