"""While pods move, the plan they move by is carried on with: one made afresh would take what has just arrived."""

import random
from dataclasses import replace

from tests.compactor.played import ACT, TERMS, Played, process
from trimtab.compactor.loop import Loop


def crowded(seed: int) -> Played:
    """Sixteen nodes, a third of them twice as large, more than half full; each second app has a budget of one."""
    by, played = random.Random(seed), Played(ready_after=6)
    free = {f"n{number:02}": 8000 if number % 3 else 4000 for number in range(16)}
    for name, cores in free.items():
        played.with_nodes(name, cpu=f"{cores}m", memory="64Gi")
    for number in range(14):
        cpu = by.choice((300, 500, 800, 1200))
        on = by.sample([name for name in free if free[name] >= cpu], by.randint(2, 6))
        for name in on:
            free[name] -= cpu
        played.with_app(f"app{number:02}", *on, cpu=f"{cpu}m", allowed=1 if number % 2 else None)
    played.pools = (replace(ACT, drains=4),)
    played.takes_after = 600
    return played


def nodes_planned(loop: Loop) -> set[str]:
    assert loop.planner.last_plan is not None
    return {step.node for step in loop.planner.last_plan.all_steps}


def begun(played: Played) -> set[str]:
    return {record.node for record in played.records if record.what == "started"}


def emptying(played: Played) -> bool:
    return any(played.on(name) for name in played.cordoned)


def test_what_begins_while_pods_move_was_in_the_plan_they_move_by() -> None:
    numbers = []
    for seed in range(4):
        played = crowded(seed)
        loop = process(played, interval=4)
        loop.run_round()
        first = nodes_planned(loop)
        played.tick()
        for _ in range(100):
            loop.run_round()
            if begun(played) and not loop.drainer.active_drains(played.look()).emptying:
                break
            assert begun(played) <= first
            played.tick()
        numbers.append(len(begun(played)))
    assert max(numbers) > played.pools[0].drains, "several, one after the other"


def test_when_they_have_settled_the_next_plan_is_made_afresh() -> None:
    played = Played().with_nodes("n1", "n2", "n3").with_app("web", "n1", "n3").with_app("api", "n3", "n3", "n3", "n3")
    loop = process(played)
    for _ in range(20):
        loop.run_round()
        played.tick()
    assert (begun(played), played.on("n2")) == ({"n1", "n2"}, [])
    played.with_nodes("n4")
    for _ in range(20):
        loop.run_round()
        played.tick()
    assert "n4" in begun(played)


def test_one_made_an_hour_ago_is_no_longer_carried_on_with() -> None:
    played = Played(ready_after=10_000).with_nodes("n1", "n2", "n3").with_app("web", "n1", "n3")
    loop = process(played, replace(TERMS, drain=10_000, ready=10_000, taken=10_000))
    for _ in range(20):
        loop.run_round()
        played.tick()
    played.with_nodes("n4")
    for _ in range(20):
        loop.run_round()
        played.tick()
    assert "n4" not in begun(played)
    for _ in range(30):
        loop.run_round()
        played.tick(200)
    assert "n4" in begun(played)
