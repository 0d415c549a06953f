"""The variants of a replay side by side, in processes of their own."""

import pytest

from tests.autoscaling.replay.simulated_captures import record_alone
from trimtab.autoscaling.churn.churn_script import ChurnOptions, draw_churn
from trimtab.autoscaling.churn.pod_shapes import generate_shapes
from trimtab.cli.replay import parallel
from trimtab.cli.replay.parallel import choose_processes, order_by_work, replay_variants
from trimtab.cli.replay.recorded_world import RecordedWorld, read_recording
from trimtab.cli.replay.replay_captures import list_variants
from trimtab.cli.replay.run import ReplaySteps
from trimtab.inputs.capture_series import SeriesFolder, find_series_files
from trimtab.machines.prices import PriceFile

STEPS = ReplaySteps()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> RecordedWorld:
    path = tmp_path_factory.mktemp("captures")
    folder = SeriesFolder(path, 60)
    for at, content in record_alone(draw_churn(ChurnOptions(hours=1, cores=40), generate_shapes()), 300, 60):
        folder.append_round(at, content)
    return read_recording(find_series_files([str(path)]), PriceFile({}, {}))


def test_the_results_and_their_order_do_not_depend_on_the_number_of_processes(recorded: RecordedWorld) -> None:
    variants, shown = list(list_variants(recorded, ("keen",), (0.5,))), list[int]()
    apart = replay_variants(recorded.world, variants, STEPS, 2, shown.append)
    assert apart == replay_variants(recorded.world, variants, STEPS, 1)
    assert shown == sorted(shown)
    assert recorded.seconds < shown[-1] <= recorded.seconds * len(variants)


def test_what_fails_in_another_process_fails_here(recorded: RecordedWorld) -> None:
    variants = list(list_variants(recorded, ("keen",), (0.5,)))
    with pytest.raises(AttributeError):
        replay_variants(recorded.world, variants, None, 2)  # type: ignore[arg-type]


def test_without_further_processes_all_happens_in_this_one(
    recorded: RecordedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise OSError

    monkeypatch.setattr(parallel, "ProcessPoolExecutor", refuse)
    variants = list(list_variants(recorded, ("careful",), (0.5,)))
    assert [one.variant for one in replay_variants(recorded.world, variants, STEPS, 2)] == variants


def test_what_is_most_work_begins_first(recorded: RecordedWorld) -> None:
    variants = list(list_variants(recorded, ("careful", "keen"), (0.5, 0.7)))
    names = [variants[number].name for number in order_by_work(variants)]
    assert names == ["Trimtab keen", "Trimtab careful", "autoscaler at 70 %", "autoscaler at 50 %"]


@pytest.mark.parametrize(
    ("node_hours", "pod_states", "cpus", "processes"),
    [(10, 700, 8, 1), (5_000, 40_000, 8, 5), (5_000, 40_000, 2, 2), (9_000, 900_000, 8, 2), (9_000, 5_000_000, 8, 1)],
)
def test_processes_are_limited_by_work_cpus_and_memory(
    node_hours: float, pod_states: int, cpus: int, processes: int
) -> None:
    assert choose_processes(5, node_hours, pod_states, cpus) == processes
