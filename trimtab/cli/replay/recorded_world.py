"""Reads a series of captures into what every variant of a replay starts from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from trimtab.autoscaling.churn.stand_in_view import GROUP_LABEL
from trimtab.autoscaling.replay.recording import SeriesRecorder, Stretch
from trimtab.cli.replay.run import ReplayWorld
from trimtab.cli.reports.node_costs import describe_price
from trimtab.cluster.capture_series import ClusterChange, ObjectKey, RoundGap
from trimtab.cluster.cluster_state import ASSUMED_REQUESTS, snapshot_inventory
from trimtab.cluster.format_count import format_count, join_first
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pool import Pool, PoolIndex, pool_from_preset, pool_name, schedulers_of
from trimtab.cluster.pool_config import read_pools
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.timestamps import Seconds, format_timestamp
from trimtab.cluster.yaml_documents import Document, read_documents
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.inputs.capture_series import SeriesReader
from trimtab.inputs.node_costs import quote_node
from trimtab.inputs.pools import WHOLE_CLUSTER, build_whole_cluster_pool, find_pools
from trimtab.machines.prices import MachinePrice, PriceFile

MAX_SKEW_SECONDS = 120
"""A larger difference between clocks is named. To list a large cluster takes a minute, and a capture has one time."""
MAX_NOTES = 3
"""So many notes of one kind are shown."""
MIN_STRETCH_SECONDS = 1800
"""A shorter stretch is left out: a node must have been unneeded for ten minutes before an autoscaler removes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedWorld:
    """A recording that can be replayed."""

    world: ReplayWorld
    nodes: tuple[NodeInfo, ...]
    """Each node that was seen, as it was last."""
    pools: tuple[Pool, ...]
    """The pools as the cluster configures them; empty if it has none."""
    cluster: str
    begin: Seconds
    end: Seconds
    rounds: int
    pod_states: int
    every_seconds: int
    notes: tuple[str, ...]
    own_drains: int = 0
    """How many nodes Trimtab was seen to drain while this was recorded."""
    guessed_prices: tuple[str, ...] = ()
    """The sources of prices that are guesses, each with its number of nodes."""
    from_prometheus: bool = False
    """Whether kube-state-metrics is the source, which shows less than captures."""
    unknown_budgets: tuple[str, ...] = ()
    """The budgets of which only the names are known."""
    absent_metrics: tuple[str, ...] = ()
    """The metrics of kube-state-metrics that the server does not have, and that a replay can do without."""

    @property
    def has_no_autoscaler(self) -> bool:
        """Whether nobody added a node, or removed one: nodes were only lost, if at all."""
        lives = [life for stretch in self.world.stretches for life in stretch.nodes]
        return all(life.is_initial and (life.end is None or life.is_lost) for life in lives)

    @property
    def seconds(self) -> int:
        """How long all stretches are together."""
        return sum(stretch.end - stretch.begin for stretch in self.world.stretches)


def read_recording(
    files: tuple[Path, ...], price_file: PriceFile, on_round: Callable[[int], None] = lambda rounds: None
) -> RecordedWorld:
    """Returns the recording in these files. Raises UsageError if they are of two clusters, or have no round."""
    reader = SeriesReader(files)
    recorder, rounds = record_changes(reader.iterate_changes(), on_round)
    source = RecordingSource(reader.cluster, reader.every_seconds, rounds, tuple(reader.notes))
    return build_recorded_world(recorder, source, price_file)


def record_changes(
    changes: Iterable[ClusterChange | RoundGap], on_round: Callable[[int], None] = lambda rounds: None
) -> tuple[SeriesRecorder, int]:
    """Returns what was recorded, and the number of its rounds. A gap ends a stretch. `on_round` is called with how many
    rounds were read."""
    recorder, rounds = SeriesRecorder(own_cordon=CORDONED_BY_US), 0
    for one in changes:
        if isinstance(one, RoundGap):
            recorder.end_stretch()
            continue
        recorder.apply_change(one)
        rounds += 1
        on_round(rounds)
    recorder.end_stretch()
    return recorder, rounds


@dataclass(frozen=True, slots=True)
class RecordingSource:
    """What the source of a recording says about itself."""

    cluster: str
    every_seconds: int
    rounds: int
    notes: tuple[str, ...]


def build_recorded_world(recorder: SeriesRecorder, source: RecordingSource, price_file: PriceFile) -> RecordedWorld:
    """Returns what a replay starts from, once all rounds were recorded."""
    stretches, notes = _choose_stretches(recorder.stretches)
    documents = _list_documents(recorder.objects)
    built = build_snapshot(documents)
    forbidden = [f"captures without {kind}: the login may not list them" for kind in sorted(built.snapshot.forbidden)]
    base = snapshot_inventory(built.snapshot, ())
    nodes = _list_nodes(stretches, price_file)
    reading = find_pools(None, documents, replace(base, nodes=nodes), ())
    pools = () if reading.assumed else reading.pools
    node_prices, guessed_prices = _set_prices(stretches, nodes, PoolIndex(pools))
    invalid_pools = read_pools(documents).mistakes
    base = replace(base, assumed_requests=ASSUMED_REQUESTS, schedulers=schedulers_of(pools, base.schedulers))
    return RecordedWorld(
        world=ReplayWorld(
            stretches=stretches,
            base=base,
            top_owners=recorder.top_owners,
            prices=_price_groups(stretches, node_prices),
            node_prices=node_prices,
        ),
        nodes=nodes,
        pools=pools,
        cluster=source.cluster,
        begin=stretches[0].begin if stretches else 0,
        end=stretches[-1].end if stretches else 0,
        rounds=source.rounds,
        pod_states=recorder.pod_count,
        every_seconds=source.every_seconds,
        notes=(
            *source.notes,
            *notes,
            *_list_notes(recorder, nodes),
            *forbidden,
            *first_few(list(map(str, built.mistakes))),
            *first_few([f"an invalid pool is ignored: {mistake}" for mistake in invalid_pools]),
        ),
        own_drains=len(recorder.own_drains),
        guessed_prices=guessed_prices,
    )


def _choose_stretches(stretches: list[Stretch]) -> tuple[tuple[Stretch, ...], list[str]]:
    long = tuple(one for one in stretches if one.end - one.begin >= MIN_STRETCH_SECONDS and one.nodes)
    notes = [
        f"the rounds from {format_timestamp(one.begin)} to {format_timestamp(one.end)} are left out: between two gaps, "
        f"less than {MIN_STRETCH_SECONDS // 60} minutes say too little"
        for one in stretches
        if one not in long
    ]
    return long, first_few(notes)


def first_few(notes: list[str]) -> list[str]:
    """Returns the first notes of one kind; of many, also how many more there are."""
    more = len(notes) - MAX_NOTES
    return notes if more <= 0 else [*notes[:MAX_NOTES], f"{format_count(more, 'more note')} of this kind"]


def _list_notes(recorder: SeriesRecorder, nodes: tuple[NodeInfo, ...]) -> list[str]:
    notes = [
        f"{format_count(count, 'node')} of the node group {former} became nodes of {new}: the group was renamed, and "
        "they count for the new one"
        for (former, new), count in sorted(recorder.renamed.items())
    ]
    if recorder.unreadable:
        objects = sorted(recorder.unreadable)
        notes.append(
            f"{format_count(len(objects), 'object')} cannot be read: {join_first(objects, 3)}; each stays as it was "
            "before, or is left out, and a budget that is left out refuses no eviction"
        )
    if abs(recorder.clock_skew) > MAX_SKEW_SECONDS:
        notes.append(
            f"the clock of the captures and that of the API server differ by {abs(recorder.clock_skew):,} s or more: "
            "pods begin, and wait, at other times than they did"
        )
    unknown = [node.name for node in nodes if isinstance(node.allocatable, Unreadable)]
    if unknown:
        names = join_first(unknown, 3)
        notes.append(
            f"{format_count(len(unknown), 'node')} without allocatable resources, so without core hours: {names}"
        )
    if recorder.changed_daemons:
        owners = join_first(sorted(recorder.changed_daemons), 3)
        notes.append(f"{owners} began or ended to have pods on nodes: each node counts with those that it had last")
    return notes


def _list_documents(objects: dict[ObjectKey, bytes]) -> list[Document]:
    content = b'{"apiVersion":"v1","kind":"List","items":[' + b",".join(objects.values()) + b"]}"
    return list(read_documents("captures", content).documents)


def _list_nodes(stretches: tuple[Stretch, ...], price_file: PriceFile) -> tuple[NodeInfo, ...]:
    by_name: dict[str, NodeInfo] = {}
    for stretch in stretches:
        for life in stretch.nodes:
            labels = {**life.node.labels, GROUP_LABEL: life.group}
            by_name[life.node.name] = replace(life.node, price=price_file.price_of(life.node), labels=labels)
    return tuple(by_name[name] for name in sorted(by_name))


def _set_prices(
    stretches: tuple[Stretch, ...], nodes: tuple[NodeInfo, ...], index: PoolIndex
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Gives each life of a node what the node costs, so that all variants count with the same prices. The prices of a
    pool's settings count as they do in a plan. Returns node → micro-dollars an hour, and the sources of prices that are
    guesses, as text."""
    prices, guesses = dict[str, int](), Counter[str]()
    for node in nodes:
        quote = quote_node(node, index)
        if isinstance(quote, MachinePrice):
            prices[node.name] = quote.amount
            _, is_guessed, text = describe_price(node, quote)
            guesses[text] += is_guessed
    for stretch in stretches:
        for life in stretch.nodes:
            price = prices.get(life.node.name)
            life.node, life.first = replace(life.node, price=price), replace(life.first, price=price)
    return prices, tuple(f"{format_count(count, 'node')} {text}" for text, count in sorted((+guesses).items()))


def _price_groups(stretches: tuple[Stretch, ...], node_prices: Mapping[str, int]) -> dict[str, int]:
    """Returns group → the price of its latest machine; 0 if a machine of the group has no known price."""
    prices: dict[str, int] = {}
    for stretch in stretches:
        for life in stretch.nodes:
            if life.node.nature.is_machine:
                price = node_prices.get(life.node.name, 0)
                prices[life.group] = price if prices.get(life.group, price) else 0
    return prices


def preset_pools(preset: str, nodes: tuple[NodeInfo, ...]) -> tuple[Pool, ...]:
    """Returns a pool with this preset for each pool that nodes name; without any, one of the whole cluster."""
    names = sorted({name for node in nodes if (name := pool_name(node))})
    pools = [pool_from_preset(preset, name) for name in names if name != WHOLE_CLUSTER]
    return tuple(replace(pool, dry_run=False) for pool in pools or [build_whole_cluster_pool(preset)])
