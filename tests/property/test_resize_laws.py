"""Laws of resizes: what is proposed, and what the state machine does in a cluster where anything may happen."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.cluster_of import ALL, cluster, node, pod
from tests.compaction.resize.running import NOW, api_pod, oom_killed, pending, wants
from trimtab.cluster.resizable_pod import ResizablePod, ResizablePodReader
from trimtab.cluster.resources import QoS, qos_class
from trimtab.cluster.wanted_requests import WantedRequests
from trimtab.compaction.resize import reasons as r
from trimtab.compaction.resize.held import amounts_to_hold, with_held_requests
from trimtab.compaction.resize.propose import ResizeContext, free_amounts, propose_resizes
from trimtab.compaction.resize.records import ResizeRecords
from trimtab.compaction.resize.state_machine import ResizePlanner, ResizeView
from trimtab.compaction.resize.steps import Replace, Resize, Revert, record_step
from trimtab.compaction.resize.types import MeasuredUse, ResizeSettings

CPU, MEMORY = 4000, 4096
"""What the node has: millicores and MiB."""
amounts = st.integers(min_value=1, max_value=2000)


@dataclass
class Running:
    """One pod of the simulated node."""

    name: str
    cpu: int
    memory: int
    cpu_limit: int = 0
    memory_limit: int = 0
    has_cpu: int = 0
    has_memory: int = 0
    answer: str = "done"
    restarts: int = 0
    killed: int = 0

    def __post_init__(self) -> None:
        self.has_cpu, self.has_memory = self.has_cpu or self.cpu, self.has_memory or self.memory

    def api(self, version: int = 1) -> Any:
        limits = {"cpu": f"{self.cpu_limit}m"} if self.cpu_limit else {}
        limits |= {"memory": f"{self.memory_limit}Mi"} if self.memory_limit else {}
        condition = (pending(self.answer),) if self.answer in ("Deferred", "Infeasible") else ()
        return api_pod(
            self.name,
            f"{self.cpu}m",
            f"{self.memory}Mi",
            limits=limits,
            restarts=self.restarts,
            conditions=condition,
            has={"cpu": f"{self.has_cpu}m", "memory": f"{self.has_memory}Mi"},
            version=str(version),
            last_state=oom_killed(self.killed) if self.killed else {},
        )

    @property
    def counted(self) -> tuple[int, int]:
        """What kube-scheduler counts: the larger of the spec and of what the pod has."""
        return max(self.cpu, self.has_cpu), max(self.memory, self.has_memory)

    def item(self) -> dict[str, Any]:
        cpu, memory = self.counted
        return pod(self.name, "a", f"{cpu}m", f"{memory}Mi")


@st.composite
def pods_on_a_node(draw: st.DrawFn) -> list[Running]:
    """Pods that fit on the node together."""
    result, cpu, memory = list[Running](), CPU, MEMORY
    for number in range(draw(st.integers(1, 6))):
        one = Running(f"web-{number}", draw(st.integers(1, 1200)), draw(st.integers(1, 1200)))
        if one.cpu > cpu or one.memory > memory:
            break
        if draw(st.booleans()):
            one.cpu_limit = one.cpu + draw(st.integers(0, 500))
        if draw(st.booleans()):
            one.memory_limit = one.memory + draw(st.integers(0, 500))
        cpu, memory = cpu - one.cpu, memory - one.memory
        result.append(one)
    return result or [Running("web-0", 500, 500)]


def read(pods: list[Running]) -> list[ResizablePod]:
    reader = ResizablePodReader()
    return [reader.read_pod(each.api()) for each in pods]


@given(pods_on_a_node(), st.data())
def test_no_proposal_breaks_a_bound(pods: list[Running], data: st.DataObject) -> None:
    """No class changes, no limit is exceeded, nothing goes below its floor or use, no node becomes overfull."""
    what = {
        f"uid-{each.name}": wants(
            data.draw(amounts),
            data.draw(amounts),
            floor=data.draw(st.integers(0, 600)),
            used=data.draw(st.integers(0, 1500)),
            memory_floor=data.draw(st.integers(0, 600)),
        )
        for each in pods
    }
    use = MeasuredUse(
        {
            (uid, "app", resource): data.draw(st.integers(0, 1500)) << (20 if resource == "memory" else 0)
            for uid in what
            for resource in data.draw(st.sets(st.sampled_from(["cpu", "memory"])))
        }
    )
    world = cluster(node("a", f"{CPU}m", f"{MEMORY}Mi"), *(each.item() for each in pods))
    advice = propose_resizes(
        read(pods), lambda each: what[each.uid], world, [ALL], context=ResizeContext(now=NOW, use=use)
    )
    by_uid = {f"uid-{each.name}": each for each in pods}
    holding = {"cpu": 0, "memory": 0}
    for proposal in advice.proposals:
        one, expected = by_uid[proposal.uid], what[proposal.uid]
        before = qos_class(one.api().spec)
        for change in proposal.changes:
            request = expected.requests["app", change.resource]
            limit = one.cpu_limit if change.resource == "cpu" else one.memory_limit << 20
            measured = use.use_of(proposal.uid, "app", change.resource) or 0
            assert change.amount_after > 0
            assert not limit or change.amount_after <= max(limit, change.amount_before)
            if change.given_up > 0:
                assert change.amount_after >= max(request.floor, measured)
                assert change.resource == "cpu" or change.amount_after * 100 >= max(request.used, measured) * 115
            assert (change.given_up > 0) is proposal.is_shrink
            holding[change.resource] += max(0, -change.given_up)
            if change.resource == "cpu":
                one.cpu = change.amount_after
            else:
                one.memory = change.amount_after >> 20
        assert before is qos_class(one.api().spec) is QoS.BURSTABLE
    # Also if every shrink is reverted: what grows was given out of what nobody requests.
    free = free_amounts(world)["a"]
    assert holding["cpu"] <= free["cpu"]
    assert holding["memory"] <= free["memory"]


@dataclass
class World:
    """One node, its pods, the records as they are stored, and a process that may die at any time."""

    pods: list[Running]
    want: dict[str, WantedRequests]
    now: int = NOW
    stored: ResizeRecords = field(default_factory=ResizeRecords)
    original: dict[str, tuple[int, int]] = field(default_factory=dict)
    verified: set[str] = field(default_factory=set)
    evictable: bool = True
    has_room_of_its_own: bool = True
    """Nobody else took room on the node."""

    def free(self) -> tuple[int, int]:
        return (CPU - sum(each.counted[0] for each in self.pods), MEMORY - sum(each.counted[1] for each in self.pods))

    def run_kubelet(self, answers: dict[str, str]) -> None:
        for each in self.pods:
            if (each.cpu, each.memory) == (each.has_cpu, each.has_memory):
                each.answer = "done"
                continue
            answer = answers.get(each.name, "done")
            # A kubelet admits what fits beside what it has allocated to others.
            others = [other for other in self.pods if other is not each]
            fits = (
                each.cpu + sum(o.has_cpu for o in others) <= CPU
                and each.memory + sum(o.has_memory for o in others) <= MEMORY
            )
            grows = each.cpu > each.has_cpu or each.memory > each.has_memory
            if grows and not fits:
                each.answer = "Deferred"
            elif answer == "done":
                each.has_cpu, each.has_memory, each.answer = each.cpu, each.memory, "done"
            elif answer != "silent":
                each.answer = answer

    def round(self, dies_after: int) -> None:
        """One round of the process; it ends after so many writes or saves."""
        observed = {each.uid: each for each in read(self.pods)}
        world = cluster(node("a", f"{CPU}m", f"{MEMORY}Mi"), *(each.item() for each in self.pods))
        records = self.stored.without_old_entries(self.now)
        advice = propose_resizes(
            list(observed.values()),
            lambda each: self.want.get(each.uid),
            with_held_requests(world, records.open, observed),
            [ALL],
            context=ResizeContext(now=self.now, open_uids=frozenset(records.open)),
        )
        view = ResizeView(
            now=self.now,
            pods=observed,
            free=free_amounts(world),
            pods_of_owner={},
            eviction_refusal=lambda _: None if self.evictable else r.NO_ROOM("no budget"),
        )
        for step in ResizePlanner(records, view, SETTINGS).next_steps(advice.proposals):
            records = record_step(records, step, self.now)
            uid = step.proposal.uid if isinstance(step, Resize) else step.uid
            if step.reason.code is r.VERIFIED:
                self.verified.add(uid)
            if dies_after == 0:
                return
            self.stored, dies_after = records, dies_after - 1
            if dies_after == 0:
                return
            if isinstance(step, Resize | Revert):
                self.write(uid, step.proposal.changes if isinstance(step, Resize) else step.changes)
            elif isinstance(step, Replace):
                self.pods = [each for each in self.pods if f"uid-{each.name}" != uid]

    def write(self, uid: str, changes: Any) -> None:
        """Writes requests; this process never makes the node overfull."""
        room_before = self.free()
        for each in self.pods:
            if f"uid-{each.name}" == uid:
                self.verified.discard(uid)
                for change in changes:
                    if change.resource == "cpu":
                        each.cpu = change.amount_after
                    else:
                        each.memory = change.amount_after >> 20
        assert min(self.free()) >= min(0, *room_before)

    def check(self) -> None:
        """What was there before every resize that is not verified stands in the stored records, and there is room to
        give all of it back, unless somebody else took it."""
        for each in self.pods:
            uid = f"uid-{each.name}"
            requests = {"cpu": each.cpu, "memory": each.memory << 20}
            before = {"cpu": self.original[uid][0], "memory": self.original[uid][1] << 20}
            if requests == before or uid in self.verified:
                continue
            record = self.stored.open[uid]
            for change in record.changes:
                assert change.amount_before == before[change.resource]
        if self.has_room_of_its_own:
            observed = {each.uid: each for each in read(self.pods)}
            actual_requests = [
                amounts_to_hold(one, observed[uid]) for uid, one in self.stored.open.items() if uid in observed
            ]
            assert sum(each.get("cpu", 0) for each in actual_requests) <= self.free()[0]
            assert sum(each.get("memory", 0) for each in actual_requests) <= self.free()[1] << 20


SETTINGS = ResizeSettings(
    canary_percent=50,
    changes_per_hour=100,
    verify_seconds=100,
    answer_seconds=60,
    deferred_seconds=60,
    first_backoff_seconds=100_000,
)


@given(pods_on_a_node(), st.data())
def test_whatever_happens_a_resize_can_be_taken_back_and_ends(pods: list[Running], data: st.DataObject) -> None:
    """In a cluster where kubelets refuse, pods run out of memory, others take the room and the process dies."""
    world = World(pods, {f"uid-{each.name}": wants(data.draw(amounts), data.draw(amounts)) for each in pods})
    world.original = {f"uid-{each.name}": (each.cpu, each.memory) for each in pods}
    for number in range(data.draw(st.integers(3, 10))):
        world.evictable = data.draw(st.booleans())
        world.round(data.draw(st.sampled_from([0, 1, 2, 3, 100, 100, 100])))
        world.check()
        answers = data.draw(st.sampled_from(["done", "done", "Deferred", "Infeasible", "silent"]))
        world.run_kubelet({each.name: answers for each in data.draw(st.permutations(world.pods))[:2]})
        event = data.draw(st.sampled_from(["none", "none", "kill", "arrive", "leave"]))
        if event == "kill":
            victim = data.draw(st.sampled_from(world.pods)) if world.pods else None
            if victim is not None:
                victim.killed, victim.restarts = world.now, victim.restarts + 1
        elif event == "arrive" and min(world.free()) > 1:
            # kube-scheduler does not know of reverts.
            world.has_room_of_its_own = False
            cpu, memory = world.free()
            new = Running(f"new-{number}", cpu - 1, memory - 1)
            world.pods.append(new)
            world.original[f"uid-{new.name}"] = (new.cpu, new.memory)
        elif event == "leave" and world.pods:
            world.pods = [each for each in world.pods if each is not data.draw(st.sampled_from(world.pods))]
        world.now += data.draw(st.sampled_from([5, 30, 70, 200]))
    world.evictable, world.want = True, {}
    for _ in range(14):
        world.run_kubelet({})
        world.round(100)
        world.check()
        world.now += 70
    assert not world.stored.open
