"""What each pod uses is known after a restart, so a workload whose pods differ is told alike before and after."""

from dataclasses import dataclass

import pytest

from tests.recommender.played import MI, START, Process, World
from tests.recommender.played import Moments as OnePod
from trimtab.cluster.quantity import scheduler_value
from trimtab.cluster.recommendation import Percentiles, ShardLayout
from trimtab.histogram.batch_history import BatchHistory, ContainerKey
from trimtab.histogram.checkpoint import Shard, decode, encode
from trimtab.histogram.import_history import restore_history
from trimtab.histogram.live_history import LiveHistory
from trimtab.histogram.pod_averages import MAX_STORED_PODS, MIN_VALUES
from trimtab.histogram.time_buckets import DAY
from trimtab.recommender.collector import Alive
from trimtab.usage.owners import OwnerIndex

APP = ContainerKey("shop", "Deployment", "web", "app")


@dataclass
class Pods(OnePod):
    """Many pods of one container, the first of which are large."""

    count: int = 30
    large: int = 1

    def collect_usage(self, diary: LiveHistory, owners: OwnerIndex, now: int, alive: Alive) -> int:
        for pod in range(self.count):
            large = pod < self.large
            diary.add_sample(APP, f"web-{pod}", "cpu", now, 3.0 if large else 0.2)
            diary.add_sample(APP, f"web-{pod}", "memory", now, (8192 if large else 1024) * MI)
        diary.close_intervals(now)
        return self.count


@pytest.mark.parametrize(("large", "sign"), [(1, ("pods-differ",)), (4, ())])
def test_a_restart_changes_nothing_of_what_is_said_of_pods_that_differ(large: int, sign: tuple[str, ...]) -> None:
    world = World(step=600)
    world.cores[APP] = 0.2
    source = Pods(world, large=large)
    first = Process(world, source).lives(2 * DAY)
    before = cpu(world)
    assert [name for name in before.signs if name == "pods-differ"] == list(sign)
    first.loop.store_all()
    world.told.stored.clear()
    Process(world, source).lives(600)
    after = cpu(world)
    assert (after.signs, after.bound, after.pod) == (before.signs, before.bound, before.pod)
    assert scheduler_value("cpu", after.request or 0) == pytest.approx(
        scheduler_value("cpu", before.request or 0), rel=0.05
    )


def cpu(world: World) -> Percentiles:
    histogram = world.of("web")
    assert histogram is not None
    assert histogram.cpu is not None
    return histogram.cpu


def seen_pods(count: int, at: int = START) -> LiveHistory:
    diary = LiveHistory()
    for n in range(MIN_VALUES + 1):  # of a pod that is alone the first value is not averaged
        for pod in range(count):
            diary.add_sample(APP, f"web-{pod:03}", "cpu", at + 60 * n, (pod + 1) / 10)
            diary.add_sample(APP, f"web-{pod:03}", "memory", at + 60 * n, (pod + 1) * 10.0 * MI)
    return diary


def again(*texts: str) -> LiveHistory:
    diary, shards = LiveHistory(), [decode("here", text) for text in texts]
    restore_history(diary, [shard for shard in shards if isinstance(shard, Shard)])
    return diary


def stored(diary: LiveHistory) -> str:
    return encode(diary, diary.list_containers(), ShardLayout())


def test_of_two_texts_that_tell_of_a_pod_the_later_counts() -> None:
    one, other = seen_pods(2), seen_pods(3, at=START + 3600)
    for pod in range(2):
        other.add_sample(APP, f"web-{pod:03}", "cpu", START + 7200, 9.0)
    for texts in ((stored(one), stored(other)), (stored(other), stored(one))):
        history = again(*texts)
        for resource in ("cpu", "memory"):
            assert means(history, resource) == pytest.approx(means(other, resource))


def means(diary: LiveHistory, resource: str) -> dict[str, float]:
    return {pod.name: pod.mean for pod in diary.average_pod_uses(APP, resource)}


def test_of_many_pods_some_are_stored_spread_as_all_are() -> None:
    diary = seen_pods(1000)
    result = sorted(means(again(stored(diary)), "cpu").values())
    assert len(result) == MAX_STORED_PODS
    assert (result[-1], result[MAX_STORED_PODS // 2]) == (pytest.approx(100.0), pytest.approx(50, rel=0.03))


def test_a_pod_that_is_alone_or_gone_takes_no_place() -> None:
    assert seen_pods(1).pod_averages.to_checkpoint((APP, "cpu")) == {}
    diary = seen_pods(2)
    for n in range(300):
        diary.add_sample(APP, "web-000", "cpu", START + 60 * (MIN_VALUES + 1 + n), 0.1)
    assert diary.pod_averages.to_checkpoint((APP, "cpu")) == {}


def test_what_the_recommender_keeps_is_told_by_recommend_too() -> None:
    diary, book = seen_pods(3), BatchHistory()
    diary.copy_to_batch(book)
    assert book.pod_averages.recent_uses((APP, "cpu")) == diary.average_pod_uses(APP, "cpu")
    assert book.compressed_window(APP, "memory").merge_days().top == 30.0 * MI  # of the interval that is not over
