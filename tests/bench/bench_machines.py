"""How well are machine types ranked, and how fast? `make bench-machines`.

On the published cluster of 310 nodes, with each of three catalogues: what the cheapest set of at most two types costs
beside a linear program over the same types (`type_lp`), by the sums of requests; the same with the best single type;
how many nodes the real pods need, packed, beside the model; and the CPU time of ranking 1 300 types.

The last line, RESULT: `vectors`, the worked reservation examples of which every value holds; `golden_error`, the
largest relative error beyond rounding in the table of worked machine types. The rest is, of the three catalogues, what
is farthest from 1: `cost_over_lp`, the cheapest set, by the sums; `single_over_lp`, the best single type, by its packed
nodes; `packed_over_model` for the best single type (the model keeps room for an average pod on each node, which is 7 %
of a node of 32 cores with these pods), and `packed_over_unbuffered`, beside the model without that room;
`recommended_over_lp` and `recommended_over_pod_lp`, the cheapest set on which the real pods were packed, beside the
program over sums and the one over shapes of pods. Last `rank_cpu_s`.
"""

import gzip
import json
import time
from math import ceil

import type_lp

from tests.bench.bench_data import OPENB_SNAPSHOT
from tests.bench.results import report_result
from tests.reservations import vectors
from tests.sizing.ranking.test_golden import ROWS, figures, scored
from trimtab.cli.reports.machine_ranking import pack_best_sets
from trimtab.cluster.cluster_state import snapshot_inventory
from trimtab.cluster.snapshot import load_snapshot
from trimtab.inputs.machine_types import SelectedNodes
from trimtab.machines.machine_types import machine_types
from trimtab.machines.prices import listed_region, price_table
from trimtab.reservations.read_profile import shipped_profiles
from trimtab.sizing.ranking.candidates import DEFAULT_PROFILES, CandidateRules, list_candidates
from trimtab.sizing.ranking.capacity import CapacityRules, measure_capacity
from trimtab.sizing.ranking.rank_types import RankingRules, rank_types
from trimtab.sizing.ranking.type_sets import find_cheapest_sets
from trimtab.sizing.ranking.workload import PoolWorkload, measure_workload

CATALOGUES = {"us-east-1": "aws", "westeurope": "azure", "europe-west4": "gcp"}
BUFFER_PODS = 1.0


def golden_error():
    """The largest relative error of a figure beyond half a unit of its last printed digit."""
    worst = 0.0
    for name, reserved, cpu, memory, volumes, _, *others in ROWS:
        row = [*reserved.split("/"), cpu, memory, volumes, *others]
        for value, printed in zip(figures(scored(name)), row, strict=True):
            half = 0.5 * 10 ** -len(printed.partition(".")[2])
            worst = max(worst, (abs(value - float(printed)) - half) / float(printed))
    return worst


def count_unbuffered(workload, score):
    """Nodes of a type by the sums, without the room that the model keeps free on each node."""
    capacity = measure_capacity(workload, score.candidate, CapacityRules(buffer_pods=0))
    return score.zones * ceil(workload.gib / workload.zones / capacity.usable_gib)


def ranked(workload, region):
    profiles = {cloud: shipped_profiles()[name] for cloud, name in DEFAULT_PROFILES.items()}
    rules = CandidateRules(architectures=workload.architectures)
    types = [kind for name, kind in sorted(machine_types().items()) if listed_region(name) == region]
    candidate_list = list_candidates(types, price_table(), {**profiles, "": profiles["gcp"]}, rules)
    return rank_types(workload, candidate_list.candidates, RankingRules())


def rank_cpu(workload):
    """CPU seconds for 1 300 types, all of them candidates."""
    profiles = {**{cloud: shipped_profiles()[name] for cloud, name in DEFAULT_PROFILES.items()}}
    types = [kind for name, kind in sorted(machine_types().items()) if name in price_table()][:1300]
    rules = CandidateRules(architectures=frozenset({"amd64", "arm64"}), included_uses=frozenset({k.use for k in types}))
    started = time.process_time()
    candidate_list = list_candidates(types, price_table(), {**profiles, "": profiles["gcp"]}, rules)
    ranking = rank_types(workload, candidate_list.candidates, RankingRules())
    find_cheapest_sets(ranking, BUFFER_PODS)
    return time.process_time() - started, len(candidate_list.candidates)


def main():
    items = json.loads(gzip.decompress(OPENB_SNAPSHOT.read_bytes()))["items"]
    shapes, daemons = type_lp.demand_of(items)
    inventory = snapshot_inventory(load_snapshot([(OPENB_SNAPSHOT.name, OPENB_SNAPSHOT.read_bytes())]).snapshot)
    workload = measure_workload(inventory, inventory.nodes)
    assert isinstance(workload, PoolWorkload)
    nodes = SelectedNodes(inventory=inventory, nodes=inventory.nodes, pool="", notes=())
    worst = {}
    for region, cloud in CATALOGUES.items():
        types = list(type_lp.eligible_types(cloud, region, daemons))
        sums, pods = type_lp.least_by_sums(types, shapes), type_lp.least_by_shapes(types, shapes)
        ranking = ranked(workload, region)
        cheapest = find_cheapest_sets(ranking, BUFFER_PODS)[0]
        started = time.process_time()
        winner, sets = pack_best_sets(nodes, ranking, BUFFER_PODS, packs=True)
        spent = time.process_time() - started
        assert winner is not None
        assert winner.packed_nodes is not None
        packed = [one for one in (winner, *sets) if one.packed_cost is not None]
        recommended = min(packed, key=lambda one: one.packed_cost)
        ratios = {
            "cost_over_lp": cheapest.total_price / 1e6 / sums,
            "single_over_lp": winner.packed_cost / sums,
            "packed_over_model": sum(winner.packed_nodes) / sum(winner.modelled_nodes),
            "packed_over_unbuffered": sum(winner.packed_nodes) / count_unbuffered(workload, ranking.best),
            "recommended_over_lp": recommended.packed_cost / sums,
            "recommended_over_pod_lp": recommended.packed_cost / pods,
        }
        worst = {name: max(ratio, worst.get(name, 1.0), key=lambda one: abs(one - 1)) for name, ratio in ratios.items()}
        print(f"{cloud} {region}: {len(types)} types; ${sums:.2f}/h by sums, ${pods:.2f}/h by shapes of pods at least")
        names = [score.candidate.name for score in cheapest.types]
        print(f"  set {names} {cheapest.node_counts} ${cheapest.total_price / 1e6:.2f}/h")
        print(f"  best type {winner.types} {winner.modelled_nodes} modelled, {winner.packed_nodes} packed")
        print(
            f"  cheapest packed {recommended.types} {recommended.packed_nodes} ${recommended.packed_cost:.2f}/h "
            f"({recommended.explanation or 'as modelled'}), {spent:.1f} s CPU"
        )
        print("  " + " ".join(f"{name}={ratio:.4f}" for name, ratio in ratios.items()))
    seconds, count = rank_cpu(workload)
    print(f"ranked {count} types in {seconds:.2f} s CPU")
    figures_of_all = " ".join(f"{name}={ratio:.4f}" for name, ratio in worst.items())
    exact, error = vectors.count_exact_examples(), golden_error()
    report_result(
        "machines", f"vectors={exact} golden_error={error:.5f} {figures_of_all} rank_cpu_s={seconds:.2f}", broken={}
    )


if __name__ == "__main__":
    main()
