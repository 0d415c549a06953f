"""A container that is killed for want of memory: once, again and again; through the recommender and `trimtab admit`."""

from pathlib import Path

import pytest
import yaml

from tests.build import owner_key
from tests.cli.snapshots import trimtab
from tests.reasons import has_facts
from tests.recommender.played import World, moments
from tests.recommender.test_told import _config_map
from trimtab.cluster.quantity import scheduler_value
from trimtab.histogram.oom_kills import OomKill
from trimtab.histogram.time_buckets import DAY
from trimtab.kube.watch_state import ChangeType, WatchEvent
from trimtab.recommender.pod_watcher import PodOwnership

MI = 1 << 20
VPA = 729 * MI * 1.07
"""What the VPA asks for in the same place, and a bucket above."""
USAGE = {
    "apiVersion": "trimtab.dev/v1alpha1",
    "kind": "PodPolicy",
    "metadata": {"name": "usage"},
    "spec": {"actions": {"requests": {"memory": {"from": "usage"}}, "limits": {"memory": "remove"}}},
}


def lived(days: int, kills_every: int, of_the_last: int, used: float = 500.0 * MI, pods: int = 1) -> World:
    """A container that holds 500 MiB and asks for 512, killed again and again at the end, in each pod."""
    world = World(step=300).runs("web", held=used)
    process = moments(world).lives(days * DAY - of_the_last)
    for _ in range(of_the_last // kills_every):
        kill = OomKill(at=world.now, request=512.0 * MI)
        pod = PodOwnership((owner_key("Deployment/web", namespace="shop"),), (("app", kill),))
        for number in range(pods):
            process.loop.pod_state.apply_change(
                WatchEvent(ChangeType.ADDED, "Pod", ("shop", f"web-{number}"), None, pod)
            )
        process.lives(kills_every)
    process.lives(1200)
    return world


@pytest.mark.parametrize(
    ("days", "every", "last", "pods"),
    [
        (2, 300, 7200, 1),
        (14, 300, DAY, 1),
        (14, 1800, DAY, 1),
        (14, DAY, DAY, 1),
        (14, DAY, 2 * DAY, 1),
        (14, DAY, DAY, 3),
    ],
)
def test_a_crash_loop_or_one_kill_ends_a_fifth_above_what_was_allowed(
    days: int, every: int, last: int, pods: int, tmp_path: Path
) -> None:
    world = lived(days, every, last, pods=pods)
    histogram = world.of("web")
    assert histogram is not None
    assert histogram.memory is not None
    assert histogram.memory.floor is not None
    assert histogram.memory.kills >= 1
    request = admitted(world, tmp_path)
    assert 612 * MI <= request[0] <= VPA
    assert (
        has_facts(request[1], "killed", "memory") or scheduler_value("memory", histogram.memory.request or 0) > 615 * MI
    )


def admitted(world: World, folder: Path) -> tuple[int, str]:
    """The memory request that `trimtab admit` gives, and what it says."""
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "a:1"}]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    shards = [_config_map(number, text) for number, text in world.told.stored.items()]
    for name, documents in (("pods", [deployment]), ("cluster", shards), ("policies", [USAGE])):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump_all(documents))
    arguments = (
        "admit",
        "-f",
        folder / "pods.yaml",
        "--cluster",
        folder / "cluster.yaml",
        "--policies",
        folder / "policies.yaml",
    )
    explained = trimtab(*arguments, "--details").output
    changed = yaml.safe_load(trimtab(*arguments, "-o", "yaml").stdout)
    container = changed["spec"]["template"]["spec"]["containers"][0]
    return scheduler_value("memory", container["resources"]["requests"]["memory"]), " ".join(
        explained.replace("│", " ").split()
    )
