"""Laws of facts that grow: history leaves no trace, and what did not change is the very same object."""

from dataclasses import fields, replace

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.build import facts, limit_range, namespace, node, priority_class, quota, runtime_class, usage, vpa, workload
from tests.property.strategies import sometimes
from trimtab.cluster.api.autoscaling import HorizontalPodAutoscaler, HPASpec, TargetRef
from trimtab.cluster.api.meta import Metadata, change
from trimtab.cluster.api.workload import Workload
from trimtab.cluster.recommendation import PAYLOAD_KEY
from trimtab.cluster.snapshot import ConfigMap
from trimtab.policy.cluster_facts import OWN_NAMESPACE
from trimtab.policy.watched_facts import FactsCache, projections_by_kind

HOLDS = projections_by_kind(OWN_NAMESPACE)
TWO = st.sampled_from(["a", "b"])
OWNER = st.sampled_from(["", "Deployment/a", "Deployment/b"])
AMOUNT = st.sampled_from(["1", "2", "4"])


def hpa(name: str, target: str) -> HorizontalPodAutoscaler:
    spec = HPASpec(scale_target_ref=TargetRef(kind_name="Deployment", name=target))
    return HorizontalPodAutoscaler(metadata=Metadata(name=name, namespace="team-a"), spec=spec)


def unschedulable(result, yes):
    return change(result, spec=change(result.spec, unschedulable=yes))


def torn(config_map: ConfigMap, yes: bool) -> ConfigMap:
    return change(config_map, data={PAYLOAD_KEY: config_map.data[PAYLOAD_KEY][:-20]}) if yes else config_map


OBJECTS = st.one_of(
    st.builds(lambda n, v: namespace(n, team=v), TWO, TWO),
    st.builds(lambda n, c: runtime_class(n, overhead={"cpu": c}), TWO, AMOUNT),
    st.builds(lambda n, v: priority_class(n, int(v)), TWO, AMOUNT),
    st.builds(lambda n, s, c: limit_range(name=n, namespace=s, max={"cpu": c}), TWO, TWO, AMOUNT),
    st.builds(
        lambda n, s, c, u: quota({"limits.cpu": c}, name=n, namespace=s, used={"limits.cpu": u}),
        TWO,
        TWO,
        AMOUNT,
        AMOUNT,
    ),
    st.builds(lambda n, t, r: vpa(f"Deployment/{t}", name=n, recommends={"app": {"cpu": r}}), TWO, TWO, AMOUNT),
    st.builds(hpa, TWO, TWO),
    st.builds(lambda n, c, u: unschedulable(node(n, cpu=c), u), TWO, AMOUNT, st.booleans()),
    st.builds(lambda k, n, o: workload(f"{k}/{n}", owner=o), st.sampled_from(["ReplicaSet", "Job"]), TWO, OWNER),
    st.builds(
        lambda s, w, p, bad: torn(usage(f"Deployment/{w}", shard=s, cpu=(p, "9")), bad),
        TWO,
        TWO,
        AMOUNT,
        sometimes(st.just(True), False),
    ),
)


def kind_of(item):
    return item.kind if isinstance(item, Workload) else type(item).__name__


class World:
    """The objects that are there, and what was told of them."""

    def __init__(self):
        self.gathering = FactsCache()
        self.objects = {}

    def put(self, item):
        kind, key = kind_of(item), (item.metadata.namespace, item.metadata.name)
        item = change(item, metadata=change(item.metadata, resource_version=str(len(self.objects))))
        holding = HOLDS[kind](item)
        self.gathering.put(kind, key, holding)
        if not isinstance(holding, msgspec.Struct) and kind == "ConfigMap" and not isinstance(holding, dict):
            item = self.objects.get((kind, key))  # a torn shard: what it said last stays
        if item is not None:
            self.objects[kind, key] = item

    def drop(self, index):
        if self.objects:
            kind, key = sorted(self.objects)[index % len(self.objects)]
            del self.objects[kind, key]
            self.gathering.drop(kind, key)

    def told(self):
        return self.gathering.build_facts()

    def expected(self):
        """What a snapshot of just what is there tells, each object as it is held."""
        rest = [
            item if isinstance(item, Workload | ConfigMap) or kind in ("Namespace", "Node") else HOLDS[kind](item)
            for (kind, _), item in self.objects.items()
        ]
        return facts(*rest)


STEPS = st.lists(st.one_of(OBJECTS, st.integers(0, 99), st.just("look")), max_size=40)


def play(world, steps):
    for step in steps:
        if step == "look":
            world.told()
        elif isinstance(step, int):
            world.drop(step)
        else:
            world.put(step)


@given(STEPS)
def test_the_same_objects_give_the_same_facts_whatever_came_in_between(steps):
    world = World()
    play(world, steps)
    assert replace(world.told(), problems=()) == world.expected()


@given(STEPS, STEPS)
def test_whatever_did_not_change_is_the_very_same_object(first, second):
    world = World()
    play(world, first)
    before = world.told()
    play(world, [step for step in second if step != "look"])
    after = world.told()
    assert (after is before) == (after == before)
    for part in fields(before):
        old, new = getattr(before, part.name), getattr(after, part.name)
        assert (old is new) == (old == new), part.name
    for old, new in keyed(before, after):
        assert all(old[key] is new[key] for key in old.keys() & new.keys() if old[key] == new[key])


def keyed(before, after):
    for name in ("namespaces", "runtime_classes", "limit_ranges", "bounds", "quotas", "vpas", "hpas", "owners"):
        yield getattr(before, name), getattr(after, name)
    yield before.recommendations.workloads, after.recommendations.workloads


@given(STEPS, STEPS)
def test_facts_once_given_never_change(first, second):
    world = World()
    play(world, first)
    before = world.told()
    remembered = replace(
        before, **{f.name: dict(v) for f in fields(before) if isinstance(v := getattr(before, f.name), dict)}
    )
    play(world, second)
    world.told()
    assert before == remembered
