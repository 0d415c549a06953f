"""The bench that replays live runs stretches what was recorded on a fast clock."""

from pathlib import Path

from tests.autoscaling.replay.simulated_captures import record_alone
from tests.bench.replay_live import stretch_recording
from trimtab.autoscaling.churn.churn_script import ChurnOptions, draw_churn
from trimtab.autoscaling.churn.pod_shapes import generate_shapes
from trimtab.autoscaling.replay.recorded_marks import list_unneeded
from trimtab.cli.replay.recorded_world import read_recording
from trimtab.inputs.capture_series import SeriesFolder, find_series_files
from trimtab.machines.prices import PriceFile

CHURN = draw_churn(ChurnOptions(hours=2, cores=60, seed=3), generate_shapes())


def test_every_time_is_as_far_from_the_beginning_as_the_clock_was_fast(tmp_path: Path) -> None:
    folder = SeriesFolder(tmp_path, 60)
    for at, content in record_alone(CHURN, 1000, 60):
        folder.append_round(at, content)
    recorded = read_recording(find_series_files([str(tmp_path)]), PriceFile({}, {}))
    (before,), (after,) = recorded.world.stretches, stretch_recording(recorded, 10).world.stretches
    assert after.begin == before.begin
    assert after.end - after.begin == 10 * (before.end - before.begin)
    for one, other in zip(before.pods, after.pods, strict=True):
        assert other.begin - after.begin == 10 * (one.begin - before.begin)
    unneeded, stretched = list_unneeded(before), list_unneeded(after)
    assert unneeded
    assert {node: 10 * (before.begin - since) for node, since in unneeded.items()} == {
        node: after.begin - since for node, since in stretched.items()
    }
    assert any(since < before.begin for since in unneeded.values())
