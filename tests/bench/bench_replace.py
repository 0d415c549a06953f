"""What do replacements by cheaper nodes save beside drains? `make bench-replace`.

Instances are cut from the published cluster; `replace_clusters` says how, and names types, prices and node groups. Each
is solved by an exact model under the same rules (`replace_milp`, HiGHS), and every state on the way is checked by
`verify_replacements`. The line RESULT has `replace_share`, what drains and replacements save together of what the model
saves, and beside it `removal_share`, what the drains save alone of the same.

On the whole cluster the exact model is too large; there the bound is that of a linear program with the same blockers,
in which nodes and pods may be divided.

`replace_generated` draws clusters with every kind of constraint, and finds no illegal state. `bench_room` measures the
other question: how many pods have to move so that a large pod fits.

    make bench-replace PART=room       one of the three parts alone: replacement, generated or room
"""

import json
import sys
import time
from dataclasses import replace

import bench_room
import replace_clusters as cut
import replace_generated
import replace_milp
from verify_replacements import NewNode, Walk

from tests.bench.bench_data import OPENB_FILES, say_generated
from tests.bench.results import choose_size, report_result
from trimtab.cluster.cluster_state import snapshot_inventory
from trimtab.cluster.pool import pool_from_preset
from trimtab.cluster.several_autoscalers import read_statuses
from trimtab.cluster.snapshot import load_snapshot
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.compaction.replace.advise import advise_replacements
from trimtab.scheduling.cluster_model import build_cluster_model

SIZES, SEEDS = (5, 6, 7, 8), choose_size(12, 2)
GENERATED, ROOMS, LARGE_ROOMS = choose_size(2000, 40), choose_size(50, 8), choose_size(12, 2)
LEAST_SHARE, LEAST_LEAD = 0.90, 0.10
MOST_OVER_BEST, MAX_ROOM_SECONDS = 1.15, 1
MICRO = 1_000_000


def read(items):
    reading = load_snapshot([("cluster.json", json.dumps({"kind": "List", "items": items}).encode())])
    assert not reading.mistakes, reading.mistakes[:3]
    return snapshot_inventory(reading.snapshot)


def advise(items):
    """The advice for a pool of all nodes, keen, that leaves no node to the autoscaler; and what it cost (CPU s)."""
    inventory = read(items)
    pool = replace(pool_from_preset("keen", "all"), everything=True, min_nodes=0, prices=cut.prices(items))
    autoscaler = read_statuses(inventory.config_maps, ()).autoscaler
    assert autoscaler is not None, "the snapshot has no status"
    context = PlanningContext(autoscaler=replace(autoscaler, threshold=0))
    started = time.process_time()
    plan = make_plan(build_cluster_model(inventory), [pool], context)
    planned = time.process_time()
    advice = advise_replacements(inventory, plan, [pool], context)
    return advice, planned - started, time.process_time() - planned


def walk(items, advice):
    """Checks every state, and that the savings are what they are said to be."""
    prices = cut.prices(items)
    priced = []
    for item in items:
        if item["kind"] == "Node":
            metadata = item["metadata"]
            labels = {**metadata["labels"], "trimtab.dev/price": str(prices[metadata["labels"][cut.TYPE]])}
            item = {**item, "metadata": {**metadata, "labels": labels}}
        priced.append(item)
    path = Walk(priced, cut.GROUP)
    for one in advice.first:
        _replace(path, one)
    for step in advice.drains.all_steps:
        path.drain(step.node, [(m.pod, m.source, m.target, m.turn) for m in step.moves])
    for one in advice.then:
        _replace(path, one)
    before = sum(prices[item["metadata"]["labels"][cut.TYPE]] for item in items if item["kind"] == "Node")
    after = sum(
        int(node["metadata"]["labels"]["trimtab.dev/price"])
        for name, node in path.state.nodes.items()
        if name not in path.gone
    )
    assert before - after == advice.saves, f"{before - after} is saved, not {advice.saves}"


def _replace(path, one):
    new = NewNode(one.new_node, one.group, one.zone, one.nodes, one.price, one.saves)
    path.replace(new, [(m.pod, m.source, m.target, m.turn) for m in one.moves])


def instances(base):
    """(saved together and by drains alone, as shares of what the model saves, the largest gap, the longest solution in
    CPU seconds)."""
    both = drains = best = 0
    gap = longest = spent = 0.0
    kinds = dict.fromkeys(("before", "after", "none"), 0)
    for size in SIZES:
        for seed in range(SEEDS):
            items = cut.cut_cluster(base, seed * 10 + size, size)
            advice, _, cpu = advise(items)
            walk(items, advice)
            started = time.process_time()
            most, bound = replace_milp.best_savings(items)
            longest = max(longest, time.process_time() - started)
            assert advice.saves <= bound * (1 + 1e-6) + 1, f"instance {size}/{seed}: {advice.saves} of {bound} at most"
            gap = max(gap, (bound - most) / max(1, most))
            both, drains, best = both + advice.saves, drains + advice.drain_saves, best + most
            kinds["before" if advice.first else "after" if advice.then else "none"] += 1
            spent = max(spent, cpu)
    count = len(SIZES) * SEEDS
    print(
        f"{count} instances: drains and replacements save ${both / MICRO:.1f} an hour, drains alone "
        f"${drains / MICRO:.1f}, the exact model ${best / MICRO:.1f} (gap {gap:.4f}, {longest:.1f} s CPU at most)"
    )
    print(
        f"  replacements before the drains in {kinds['before']}, only after them in {kinds['after']}, none in "
        f"{kinds['none']}; every state verified; {spent:.2f} s CPU at most"
    )
    return both / best, drains / best, gap, longest


def whole(items):
    """The same on the whole cluster, beside a bound with the same blockers."""
    advice, planning, cpu = advise(items)
    walk(items, advice)
    bound = replace_milp.bound_savings(items)
    saves, alone, most = (amount / MICRO for amount in (advice.saves, advice.drain_saves, bound))
    print(
        f"whole cluster: drains save ${alone:.1f} an hour, with {len(advice.replacements)} new nodes ${saves:.1f} of "
        f"${most:.1f} by the bound; {planning:.2f} s CPU for the drains, {cpu:.2f} s for the replacements; "
        "every state verified"
    )
    assert advice.saves <= bound * (1 + 1e-6), "an advice saves more than the bound"
    return advice.saves / bound, advice.drain_saves / bound, cpu


def measure_replacement():
    """(figures, bounds that do not hold) of replacements, compared with the exact model, and of the whole cluster."""
    base = cut.published_items()
    share, removal, gap, longest = instances(base)
    whole_share, whole_removal, cpu = whole(cut.whole_cluster(base))
    figures = (
        f"replace_share={share:.3f} removal_share={removal:.3f} model_gap={gap:.4f} model_cpu_s={longest:.1f} "
        f"instances={len(SIZES) * SEEDS} whole_share={whole_share:.3f} whole_removal_share={whole_removal:.3f} "
        f"whole_cpu_s={cpu:.2f}"
    )
    return figures, {
        f"replace_share at least {LEAST_SHARE}": share < LEAST_SHARE,
        f"removal alone at least {LEAST_LEAD} lower": share - removal < LEAST_LEAD,
        "model_gap at most 0.01": gap > 0.01,
    }


def check_generated():
    """(figures, bounds that do not hold) of generated clusters; an illegal state ends the process."""
    replacements, moves = replace_generated.check_on_all_cores(GENERATED)
    print(f"{GENERATED} generated clusters: {replacements} replacements, {moves} moves, no illegal state")
    return f"generated={GENERATED} illegal=0", {}


def measure_room():
    """(figures, bounds that do not hold) of room for large pods."""
    over, placed, cpu, needing = bench_room.measure(ROOMS, LARGE_ROOMS)
    figures = (
        f"room_evictions_over_best={over:.3f} room_placed_share={placed:.2f} room_instances={needing} "
        f"room_cpu_s={cpu:.2f}"
    )
    return figures, {
        f"room_evictions_over_best at most {MOST_OVER_BEST}": over > MOST_OVER_BEST,
        "room_placed_share 1.00": placed < 1,
        f"room_cpu_s at most {MAX_ROOM_SECONDS}": cpu > MAX_ROOM_SECONDS,
    }


PARTS = {"replacement": measure_replacement, "generated": check_generated, "room": measure_room}


def main(parts):
    is_generated = say_generated("bench-replace, room in GPU clusters", *OPENB_FILES)
    results = [PARTS[part]() for part in parts or PARTS]
    report_result(
        "replace",
        " ".join(figures for figures, _ in results),
        broken={bound: is_broken for _, bounds in results for bound, is_broken in bounds.items()},
        is_generated=is_generated,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
