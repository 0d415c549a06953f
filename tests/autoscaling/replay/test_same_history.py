"""A replay that counts only what has changed has the same history as one that counts everything again."""

from pathlib import Path

import pytest

from tests.autoscaling.replay.plain_replay import PlainCluster, PlainScheduler
from tests.autoscaling.replay.simulated_captures import record_alone
from trimtab.autoscaling.churn.churn_history import ChurnRecord
from trimtab.autoscaling.churn.churn_script import ChurnOptions, draw_churn
from trimtab.autoscaling.churn.dice import Dice
from trimtab.autoscaling.churn.pod_shapes import generate_shapes
from trimtab.autoscaling.replay.recording import Stretch
from trimtab.autoscaling.replay.replay_cluster import ReplayCluster
from trimtab.autoscaling.replay.replay_scheduler import ReplayScheduler
from trimtab.cli.replay.recorded_world import RecordedWorld, preset_pools, read_recording
from trimtab.cli.replay.run import ReplaySteps, ReplayVariant, run_cluster, start_cluster
from trimtab.cluster.api.meta import LabelSelector, change
from trimtab.cluster.api.pod import PodAffinityTerm, TopologySpreadConstraint
from trimtab.cluster.node import HOSTNAME_LABEL
from trimtab.inputs.capture_series import SeriesFolder, find_series_files
from trimtab.machines.prices import PriceFile

EVERY_SECONDS = 120
SEEDS = (4, 5, 6)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[int, RecordedWorld]:
    return {seed: record(tmp_path_factory.mktemp(f"seed{seed}"), seed) for seed in SEEDS}


def record(path: Path, seed: int) -> RecordedWorld:
    churn = draw_churn(ChurnOptions(seed=seed, hours=1.5, cores=90, step_seconds=8), generate_shapes())
    folder = SeriesFolder(path, EVERY_SECONDS)
    for at, content in record_alone(churn, 300, EVERY_SECONDS):
        folder.append_round(at, content)
    return read_recording(find_series_files([str(path)]), PriceFile({}, {}))


def constrain_pods(stretch: Stretch, seed: int, policy: str) -> Stretch:
    """Gives a third of the workloads an anti-affinity, or a spread over nodes."""
    dice = Dice.for_purpose(seed, "constraints")
    constrained = {}
    for slot in sorted(stretch.samples):
        sample, share = stretch.samples[slot], dice.draw_share()
        selector = LabelSelector(match_labels=dict(sample.requirements.labels))
        if share < 0.15:
            term = PodAffinityTerm(label_selector=selector, topology_key=HOSTNAME_LABEL)
            sample = change(sample, requirements=change(sample.requirements, required_anti_affinity=(term,)))
        elif share < 0.35:
            spread = TopologySpreadConstraint(
                topology_key=HOSTNAME_LABEL,
                max_skew=2,
                when_unsatisfiable="DoNotSchedule",
                label_selector=selector,
                node_taints_policy=policy,
            )
            sample = change(sample, requirements=change(sample.requirements, hard_spreads=(spread,)))
        constrained[slot] = sample
    return Stretch(
        stretch.begin, stretch.end, stretch.rounds, stretch.pods, stretch.nodes, stretch.budgets, constrained
    )


def histories(recorded: RecordedWorld, stretch: Stretch, preset: str) -> list[list[ChurnRecord]]:
    pools = preset_pools(preset, recorded.nodes) if preset else ()
    variant, steps = ReplayVariant(name=preset, pools=pools), ReplaySteps(scan=20, plan=60, poll=20)
    result = []
    for cluster_type, scheduler_type in ((ReplayCluster, ReplayScheduler), (PlainCluster, PlainScheduler)):
        cluster = start_cluster(
            recorded.world, stretch, variant, cluster_type=cluster_type, scheduler_type=scheduler_type
        )
        run_cluster(cluster, variant, steps)
        result.append(cluster.history)
    return result


@pytest.mark.parametrize("preset", ["", "balanced", "keen"])
@pytest.mark.parametrize("seed", SEEDS)
def test_it_has_the_history_of_a_replay_that_counts_all_again(
    recordings: dict[int, RecordedWorld], seed: int, preset: str
) -> None:
    (stretch,) = recordings[seed].world.stretches
    history, plain = histories(recordings[seed], stretch, preset)
    assert history == plain


@pytest.mark.parametrize("policy", ["Ignore", "Honor"])
@pytest.mark.parametrize("seed", SEEDS)
def test_it_does_so_where_pods_decide_about_each_other(
    recordings: dict[int, RecordedWorld], seed: int, policy: str
) -> None:
    (stretch,) = recordings[seed].world.stretches
    history, plain = histories(recordings[seed], constrain_pods(stretch, seed, policy), "keen")
    assert history == plain


def test_the_churns_are_no_idle_ones(recordings: dict[int, RecordedWorld]) -> None:
    (stretch,) = recordings[5].world.stretches
    history, _ = histories(recordings[5], stretch, "keen")
    assert sum(getattr(one, "is_evicted", False) for one in history) > 10
