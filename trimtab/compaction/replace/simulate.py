"""Simulates replacements and drains in turns, until neither saves anything more.

Every node group gives the nodes that a replacement needs. The replacements that come before the drains are the first
round. Then the drains are simulated round by round, and the replacements that are left are a round of their own; so it
goes on while there are any.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.pool import Pool
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.compaction.replace.advise import advise_replacements
from trimtab.compaction.replace.plan_replacements import Replacement, plan_replacements
from trimtab.compaction.simulate import SimulatedMove, Simulation, SimulationRound
from trimtab.scheduling.cluster_model import Again, build_cluster_model

MAX_TURNS = 20
"""The largest number of turns of drains and replacements."""
MONEY = "micro-dollars an hour"


def simulate_with_replacements(
    inventory: Inventory,
    pools: Sequence[Pool],
    context: PlanningContext,
    again: Again | None,
    simulate_drains: Callable[[Inventory], Simulation],
) -> Simulation:
    """Returns the rounds of drains and replacements. The savings of replacements count only if the unit of the drains
    is money.

    `simulate_drains`: returns the rounds of drains from a cluster on, without replacements."""
    plan = make_plan(build_cluster_model(inventory, again), pools, context)
    advice = advise_replacements(inventory, plan, pools, context, again)
    simulation = simulate_drains(advice.after_first)
    rounds = [*_replacement_round(advice.first, plan.unit), *simulation.rounds]
    for _ in range(MAX_TURNS):
        replacements = plan_replacements(simulation.after, pools, context, again, simulation.last.left)
        if not replacements.replacements:
            break
        rounds += _replacement_round(replacements.replacements, plan.unit)
        simulation = simulate_drains(replacements.after)
        rounds += simulation.rounds
    new_nodes = {name for one in rounds for name in one.new_nodes}
    stays = {name: reason for name, reason in simulation.last.refusals.items() if name not in new_nodes}
    return replace(
        simulation,
        rounds=tuple(rounds),
        nodes_before=len(inventory.machines),
        saved=sum(one.saved for one in rounds),
        first=plan,
        last=replace(simulation.last, refusals=stays),
    )


def _replacement_round(replacements: Sequence[Replacement], unit: str) -> list[SimulationRound]:
    """Returns the round in which all of these replacements are carried out; none if there are no replacements."""
    if not replacements:
        return []
    return [
        SimulationRound(
            nodes=tuple(name for one in replacements for name in one.nodes),
            new_nodes=tuple(one.new_node for one in replacements),
            landings=tuple(
                SimulatedMove(pod=move.pod, source=move.source, target=move.target, turn=move.turn, budget=move.budget)
                for one in replacements
                for move in one.moves
            ),
            saved=sum(one.saves for one in replacements) if unit == MONEY else 0,
        )
    ]
