"""Groups of pods move as a whole, whatever is refused in the middle and whenever the process dies."""

from dataclasses import replace
from typing import Any

import pytest

from tests.compactor.played import ACT, Played, run
from trimtab.cluster.disruption_terms import WINDOWS_ANNOTATION
from trimtab.cluster.pool_values import GroupMode
from trimtab.compaction.drain.annotation import PodToEvict
from trimtab.compactor.actuator import EvictionResponse, EvictionResult

MOVES = replace(ACT, groups=GroupMode.MOVE)
LABEL = "leaderworkerset.sigs.k8s.io/group-key"


def two(played: Played | None = None, **more: Any) -> Played:
    """A group with a pod on n1 and two on n2, which stays like n3."""
    played = (played or Played()).with_nodes("n1", "n2", "n3")
    played.with_app("web", "n1", "n2", "n2", cpu="500m", labels={LABEL: "train"}, **more)
    played.with_app("big", "n2", "n3", cpu="1", annotations={"trimtab.dev/do-not-disrupt": "true"})
    played.pools = (MOVES,)
    return played


def evictions(played: Played) -> list[str]:
    return sorted(write for write in played.writes if write.startswith("evict"))


ALL_THREE = [f"evict default/web-{number}" for number in range(3)]


def test_by_default_nothing_moves() -> None:
    played = two()
    played.pools = (ACT,)
    run(played, 60)
    assert evictions(played) == []


def test_all_pods_of_the_group_are_evicted_in_one_round() -> None:
    played = two()
    run(played, 60)
    assert evictions(played) == ALL_THREE
    rounds = [number for number, write in enumerate(played.writes) if write.startswith("evict")]
    assert rounds == list(range(rounds[0], rounds[0] + 3))
    assert "web" not in {
        item["metadata"]["labels"]["app"] for item in played.pods.values() if item["spec"]["nodeName"] == "n1"
    }


def test_where_the_budget_allows_fewer_none_is_evicted() -> None:
    played = two(allowed=2)
    run(played, 60)
    assert evictions(played) == []


def test_a_budget_that_is_spent_after_the_drain_began_keeps_all_and_says_so() -> None:
    played = two(allowed=3)
    loop = run(played, 1)
    for _ in range(60):
        if any(write.startswith("cordon") for write in played.writes):
            break
        run(played, 1, loop)
    played.budgets["web"] = 2
    run(played, 20, loop)
    assert evictions(played) == []
    played.budgets["web"] = 3
    run(played, 20, loop)
    assert evictions(played) == ALL_THREE


@pytest.mark.parametrize("number", range(14))
def test_killed_after_any_write_the_rest_of_the_group_follows(number: int) -> None:
    played = two()
    played.faults = {number: "killed"}
    run(played, 120)
    assert sorted(set(evictions(played))) == ALL_THREE
    assert (played.short, played.bought) == ([], [])


class Refusing(Played):
    """Its API server refuses the eviction of web-1 a few times."""

    refusals = 3

    def evict_pod(self, move: PodToEvict) -> EvictionResponse:
        if move.pod == "default/web-1" and self.refusals:
            self.refusals -= 1
            self.writes.append("refuse")
            return EvictionResponse(became=EvictionResult.REFUSED, message="budget web allows none")
        return super().evict_pod(move)


def test_what_is_refused_half_way_is_told_and_the_rest_waits_and_follows() -> None:
    played = two(played=Refusing())
    run(played, 60)
    after = played.writes.index("refuse")
    assert [write for write in played.writes[:after] if write.startswith("evict")] == ALL_THREE[:1]
    # The rest is not evicted in the same round.
    assert not played.writes[after + 1].startswith("evict")
    assert {record.code for record in played.records if record.what == "refused"} == {"group-rest-waits"}
    assert evictions(played) == ALL_THREE


class Guarded(Played):
    """A webhook in front of its API server refuses the last pod of the group a few times, dry runs included."""

    answer = EvictionResponse(became=EvictionResult.REFUSED, message="a webhook says no", is_denied=True)
    refusals = 3
    tried = 0

    def try_eviction(self, move: PodToEvict) -> EvictionResponse:
        self.tried += 1
        if move.pod == "default/web-2" and self.refusals:
            self.refusals -= 1
            assert evictions(self) == []
            return self.answer
        return super().try_eviction(move)


def test_what_the_api_server_would_refuse_keeps_the_whole_group_until_it_permits_all() -> None:
    played = Guarded()
    run(two(played=played), 60)
    assert {record.code for record in played.records if record.what == "refused"} == {"group-eviction-refused"}
    assert (evictions(played), played.tried) == (ALL_THREE, 4 * 3)


def test_what_can_never_be_evicted_ends_the_drain_and_none_is_evicted() -> None:
    played = Guarded()
    played.answer, played.refusals = EvictionResponse(became=EvictionResult.NEVER, message="two budgets"), 10**6
    run(two(played=played), 60)
    assert (evictions(played), played.cordoned) == ([], [])
    assert "released" in {record.what for record in played.records}


def test_a_window_that_closes_half_way_leaves_no_group_split() -> None:
    played = two(played=Refusing())
    loop = run(played, 1)
    for _ in range(60):
        if "refuse" in played.writes:
            break
        run(played, 1, loop)
    for item in played.pods.values():
        if item["metadata"]["labels"]["app"] == "web":
            item["metadata"]["annotations"][WINDOWS_ANNOTATION] = "mon 12:00-13:00"
    run(played, 20, loop)
    assert evictions(played) == ALL_THREE
    assert "released" not in {record.what for record in played.records}
