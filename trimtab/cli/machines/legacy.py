"""`trimtab machines legacy` empties a pool that is to be given up: it taints the pool's nodes and makes room for their
pods elsewhere; the compactor drains them."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import click
import msgspec

from trimtab.cli.options import takes
from trimtab.cli.print_text import print_text
from trimtab.cluster.api.core import Taint
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import format_count
from trimtab.cluster.node import LEGACY_TAINT_KEY, NodeInfo
from trimtab.cluster.pod import PodReader, SchedulingRequirements
from trimtab.cluster.pool import pool_name, pool_source
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.replace.legacy_pools import (
    PLACEHOLDER_LABEL,
    PLACEHOLDER_PRIORITY,
    LegacyTaint,
    MissingRoom,
    PlaceholderScope,
    choose_taint,
    find_missing_room,
    find_refusals,
    plan_placeholders,
    render_placeholders,
)
from trimtab.compaction.replace.node_templates import find_templates
from trimtab.compactor.settings import Settings
from trimtab.inputs import flags, live_cluster
from trimtab.inputs import machine_types as inputs
from trimtab.inputs.command_faults import RuntimeFailure, UsageError
from trimtab.inputs.machine_types import PoolOptions, SelectedNodes, read_pool_nodes
from trimtab.inputs.option import option
from trimtab.machines.prices import MachinePrice, quote_price

if TYPE_CHECKING:
    from trimtab.kube.client import Client
    from trimtab.kube.objects import Writer

PRIORITY_CLASS = "trimtab-placeholder"
OWNER_LISTS = ("/apis/apps/v1/deployments", "/apis/apps/v1/statefulsets", "/apis/batch/v1/cronjobs")
"""The lists of owners whose pod templates count even if they have no pods at present."""
_TEMPLATE_PATHS = (("spec", "template"), ("spec", "jobTemplate", "spec", "template"))


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinesLegacyOptions:
    """The options of `trimtab machines legacy`."""

    nodes: PoolOptions
    price_paths: Annotated[tuple[str, ...], flags.PRICES] = ()
    target: Annotated[
        str | None,
        option(
            "--to-pool",
            former=("--to",),
            metavar="POOL",
            help="The pool that receives the pods. The option is required unless you pass --undo.",
        ),
    ] = None
    batch: Annotated[
        int,
        option("--batch", minimum=1, help="The number of legacy nodes for whose pods room is made at the same time."),
    ] = 3
    compares: Annotated[
        bool,
        flags.COMPARE.with_help(
            "Refuse the migration if the new nodes that the pods need cost as much as the old ones."
        ),
    ] = True
    applies: Annotated[
        bool,
        flags.APPLY.with_help(
            "Taint the legacy nodes and make room in the new pool. Without this option nothing is changed."
        ),
    ] = False
    follow: Annotated[
        float | None,
        option(
            "--follow",
            minimum=0.1,
            metavar="SECONDS",
            help="With --apply: repeat the step until no legacy node has pods; nodes that are added later are tainted "
            "as well.",
        ),
    ] = None
    undoes: Annotated[
        bool, flags.UNDO.with_help("Remove Trimtab's own taints and placeholder pods, and do nothing else.")
    ] = False
    namespace: Annotated[
        str,
        flags.SYSTEM_NAMESPACE.with_help(
            "The namespace in which Trimtab is installed. The placeholder pods, which reserve room in the new pool, "
            "are created there."
        ),
    ] = Settings().namespace


@click.command("legacy")
@takes(MachinesLegacyOptions)
def verb(options: MachinesLegacyOptions) -> None:
    """Empty a pool (--pool) that is to be given up: taint its nodes, and make room for its pods in another pool.

    The nodes are tainted with trimtab.dev/legacy: NoSchedule if every DaemonSet tolerates the taint and no workload can
    run only there, PreferNoSchedule otherwise. Placeholder pods of low priority make the cluster autoscaler buy nodes
    for the pods of the next nodes, and are deleted once these pods fit. The compactor then drains the nodes by the
    settings of their pool, within its budgets and windows. No pod moves while the new pool is at its maximum or out of
    stock.
    """
    pool_nodes = inputs.add_node_prices(read_pool_nodes(options.nodes, needs_nodes=False), options.price_paths)
    if not pool_nodes.pool:
        raise UsageError([ConfigError(file="--pool", expected="the name of the legacy pool", got="none")])
    placeholders = PlaceholderScope(pool_nodes.pool, options.namespace)
    if options.undoes:
        with live_cluster.connect_live(pool_nodes.cluster) as client:
            print_text(remove_traces(client, pool_nodes, placeholders))
        return
    if not pool_nodes.nodes:
        raise UsageError([inputs.report_unknown_pool(pool_nodes.inventory, pool_nodes.pool)])
    target, follow = options.target, options.follow
    if not target or target == pool_nodes.pool:
        expected = "a pool other than the legacy one"
        raise UsageError([ConfigError(file="--to-pool", expected=expected, got=target or "none")])
    if follow is not None and not options.applies:
        raise UsageError([ConfigError(file="--follow", expected="--apply", got="none")])
    migration = Migration(target=target, batch=options.batch, applies=options.applies, placeholders=placeholders)
    is_over = run_step(migration, pool_nodes, compares=options.compares, must_begin=True)
    while follow is not None and not is_over:
        time.sleep(follow)
        try:
            present_nodes = read_pool_nodes(options.nodes, needs_nodes=False)
            present_nodes = inputs.add_node_prices(present_nodes, options.price_paths)
            is_over = run_step(migration, present_nodes, compares=False, must_begin=False)
        except (RuntimeFailure, UsageError) as error:
            # A migration takes hours: an API server that does not answer for a while must not end it.
            print_text(f"this step failed, and Trimtab repeats it: {error}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """The parameters of a migration, which are the same in all its steps."""

    target: str
    """The pool that the pods move to."""
    batch: int
    applies: bool
    placeholders: PlaceholderScope


def run_step(migration: Migration, pool_nodes: SelectedNodes, *, compares: bool, must_begin: bool) -> bool:
    """Print what is to be done now, and do it if the migration is applied; return whether all pods have moved.

    `must_begin`: whether to raise RuntimeFailure if something is refused. Otherwise a later step tries again.
    `compares`: whether to compare the machine types. Only the first step does, because a pool that has become empty has
    no workload to compare them by.
    """
    target = migration.target
    taint = choose_taint(pool_nodes.inventory, pool_nodes.nodes, _read_templates(pool_nodes))
    missing = _find_room(pool_nodes, migration)
    refusals = _list_refusals(pool_nodes, target, missing, compares)
    for line in _describe(pool_nodes, target, taint, refusals, missing):
        print_text(line)
    if refusals and must_begin:
        raise RuntimeFailure("The migration was refused; nothing was done.")
    if migration.applies and not refusals:
        with live_cluster.connect_live(pool_nodes.cluster) as client:
            for line in apply_step(client, pool_nodes, migration, taint, missing):
                print_text(line)
    return not missing.nodes


def _target_nodes(pool_nodes: SelectedNodes, target: str) -> tuple[NodeInfo, ...]:
    return tuple(node for node in pool_nodes.inventory.nodes if pool_name(node) == target)


def _list_refusals(pool_nodes: SelectedNodes, target: str, missing: MissingRoom, compares: bool) -> tuple[str, ...]:
    """Returns the reasons why no pod may move now.

    The node groups of the new pool have to give nodes only while it lacks room for the pods."""
    refusals = find_refusals(
        pool_nodes.inventory,
        pool_nodes.nodes,
        _target_nodes(pool_nodes, target),
        find_templates(pool_nodes.inventory, inputs.find_autoscaler(pool_nodes), ()),
        lacks_room=bool(missing.pods),
        compares=compares and bool(missing.nodes),
    )
    return tuple(map(str, refusals))


def _find_room(pool_nodes: SelectedNodes, migration: Migration) -> MissingRoom:
    prices = {
        node.name: quoted.amount
        for node in pool_nodes.nodes
        if isinstance(quoted := quote_price(node, {}), MachinePrice)
    }
    target = _target_nodes(pool_nodes, migration.target)
    return find_missing_room(
        pool_nodes.inventory, migration.placeholders, pool_nodes.nodes, target, prices, migration.batch
    )


def _describe(
    pool_nodes: SelectedNodes, target: str, taint: LegacyTaint, refusals: Iterable[str], missing: MissingRoom
) -> Iterable[str]:
    count = format_count(len(pool_nodes.nodes), "node")
    yield f"{count} of pool {pool_nodes.pool} get the taint {LEGACY_TAINT_KEY}:{taint.taint.effect}"
    yield from (f"  because {reason}" for reason in taint.reasons)
    yield from (f"the migration is refused: {refusal}" for refusal in refusals)
    if not missing.nodes:
        yield f"no node of {pool_nodes.pool} has pods of the workload, so no pod is left to move"
    elif missing.pods:
        where = ", ".join(missing.nodes)
        yield (
            f"pool {target} has no room yet for {len(missing.pods)} of "
            f"{format_count(len(missing.moving), 'pod')} of the nodes {where}"
        )
    else:
        yield (
            f"pool {target} has room for the pods of {', '.join(missing.nodes)}, so the compactor may drain these nodes"
        )


def _read_templates(pool_nodes: SelectedNodes) -> dict[str, SchedulingRequirements]:
    """Returns owner → the scheduling requirements of its next pod, also for owners without pods."""
    if live_cluster.LIVE in pool_nodes.cluster.paths:
        with live_cluster.connect_live(pool_nodes.cluster) as client:
            owners = _list_owners(client)
    else:
        owners = [document.value for document in pool_nodes.documents if isinstance(document.value, dict)]
    reader = PodReader()
    templates: dict[str, SchedulingRequirements] = {}
    for owner in owners:
        for path in _TEMPLATE_PATHS:
            template: Any = owner
            for key in path:
                template = template.get(key) if isinstance(template, dict) else None
            if not isinstance(template, dict) or owner.get("kind") == "DaemonSet" or "spec" not in template:
                continue
            meta = owner.get("metadata", {})
            name = f"{owner.get('kind', 'owner')} {meta.get('namespace', '')}/{meta.get('name', '')}"
            metadata = {**template.get("metadata", {}), "name": "x", "namespace": meta.get("namespace", "")}
            shape = msgspec.convert({"metadata": metadata, "spec": template["spec"]}, Pod, strict=False)
            templates[name] = reader.read_pod(shape).requirements
    return templates


def _list_owners(client: "Client") -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = []
    for path in OWNER_LISTS:
        kind = path.rpartition("/")[2].removesuffix("s")
        items = msgspec.json.decode(client.get(path, doing=f"list {kind}s")).get("items", ())
        listed += ({**item, "kind": kind} for item in items)
    return listed


def apply_step(
    client: "Client", pool_nodes: SelectedNodes, migration: Migration, taint: LegacyTaint, missing: MissingRoom
) -> Iterable[str]:
    """Taint the legacy nodes, then create or delete placeholder pods so that there is enough room; yield what was
    done."""
    from trimtab.kube.errors import Conflict
    from trimtab.kube.objects import Writer, apply, delete

    writer = Writer(client=client, manager="trimtab-command")
    yield from set_legacy_taint(client, pool_nodes.nodes, taint.taint)
    change = plan_placeholders(
        missing, migration.placeholders, pool_nodes.inventory.pods, is_draining=_is_draining(pool_nodes, missing)
    )
    for pod in change.delete:
        delete(writer, "Pod", pod.name, pod.namespace)
    if change.delete:
        yield f"deleted {len(change.delete)} placeholder pods"
    if not missing.nodes:
        yield from _delete_priority_class(writer, pool_nodes, migration.placeholders)
    if not change.create:
        return
    apply(
        writer,
        {
            "kind": "PriorityClass",
            "metadata": {"name": PRIORITY_CLASS},
            "value": PLACEHOLDER_PRIORITY,
            "preemptionPolicy": "Never",
            "description": "Pods that reserve room for pods of a pool whose nodes are being drained.",
        },
    )
    nodes = _target_nodes(pool_nodes, migration.target)
    if not nodes:
        expected, todo = "a pool with at least one node, whose labels Trimtab reads", "scale the new pool to one node"
        raise UsageError(
            [ConfigError(file="--to-pool", expected=expected, got=f"{migration.target} without a node", todo=todo)]
        )
    _, label = pool_source(nodes[0])
    selector, created = {label: migration.target}, 0
    for document in render_placeholders(
        change.create, migration.placeholders, selector, PRIORITY_CLASS, _shared_taints(nodes)
    ):
        try:
            apply(writer, document)
            created += 1
        except Conflict:
            # Another client owns a field of it, or it is being deleted: the next run looks again.
            continue
    yield f"created {format_count(created, 'placeholder pod')}"


def _is_draining(pool_nodes: SelectedNodes, missing: MissingRoom) -> bool:
    """Returns whether the compactor has cordoned a legacy node that still has pods."""
    inventory = pool_nodes.inventory
    occupied = {pod.node for pod in inventory.pods if not (pod.is_finished or pod.is_daemon or pod.is_static)}
    return bool(missing.nodes) and any(
        node.is_cordoned and CORDONED_BY_US in node.annotations and node.name in occupied for node in pool_nodes.nodes
    )


def _shared_taints(nodes: tuple[NodeInfo, ...]) -> list[Taint]:
    return [taint for taint in nodes[0].taints if all(taint in node.taints for node in nodes)] if nodes else []


def set_legacy_taint(client: "Client", legacy: Iterable[NodeInfo], taint: Taint | None) -> Iterable[str]:
    """Set this taint on the nodes, or remove Trimtab's taint if `taint` is None. Yields what was done. Other taints are
    not changed."""
    from trimtab.kube.errors import Conflict, NotFound
    from trimtab.kube.nodes import set_taints
    from trimtab.kube.objects import Writer, get_plain

    writer, changed = Writer(client=client, manager="trimtab-command"), 0
    for node in legacy:
        for _ in range(5):
            whole = get_plain(client, "Node", node.name)
            if whole is None:
                break
            taints = [msgspec.convert(one, Taint, strict=False) for one in whole["spec"].get("taints") or ()]
            if (taint is None or taint in taints) and not any(
                one.key == LEGACY_TAINT_KEY and one != taint for one in taints
            ):
                break
            wanted = [one for one in taints if one.key != LEGACY_TAINT_KEY] + ([taint] if taint else [])
            try:
                set_taints(writer, node.name, whole["metadata"]["resourceVersion"], wanted)
                changed += 1
                break
            except Conflict:
                # Somebody changed the node since it was read: read it again.
                continue
            except NotFound:
                break
    if changed:
        yield (
            f"tainted {format_count(changed, 'node')}"
            if taint
            else f"removed the taint of {format_count(changed, 'node')}"
        )


def remove_traces(client: "Client", pool_nodes: SelectedNodes, scope: PlaceholderScope) -> str:
    """Remove Trimtab's taint from these nodes, the pool's placeholders and their PriorityClass; return what was
    done."""
    from trimtab.kube.objects import Writer, delete

    writer = Writer(client=client, manager="trimtab-command")
    done = list(set_legacy_taint(client, pool_nodes.nodes, None))
    placeholders = [pod for pod in pool_nodes.inventory.pods if scope.has_pod(pod)]
    for pod in placeholders:
        delete(writer, "Pod", pod.name, pod.namespace)
    done += _delete_priority_class(writer, pool_nodes, scope)
    return "; ".join(
        [", ".join(done) or "no node had a taint of Trimtab", f"deleted {len(placeholders)} placeholder pods"]
    )


def _delete_priority_class(writer: "Writer", pool_nodes: SelectedNodes, scope: PlaceholderScope) -> Iterable[str]:
    """Delete the PriorityClass of the placeholder pods, unless another pool still has placeholder pods; yield what was
    done."""
    from trimtab.kube.objects import delete

    pods = (pod for pod in pool_nodes.inventory.pods if pod.namespace == scope.namespace)
    pools = {pod.requirements.labels.get(PLACEHOLDER_LABEL, "") for pod in pods}
    if not pools - {"", scope.pool} and delete(writer, "PriorityClass", PRIORITY_CLASS):
        yield f"deleted PriorityClass {PRIORITY_CLASS}"
