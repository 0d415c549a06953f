"""Days that are over, written once beside the checkpoints."""

import io
from pathlib import Path

import pytest

from tests.fleet.histories import FIRST_DAY, history_of
from trimtab.histogram.live_history import LiveHistory
from trimtab.histogram.time_buckets import DAY, HOUR
from trimtab.recommender.daily_history import RETRY_SECONDS, DailyHistoryWriter
from trimtab.recommender.process import check_daily_history
from trimtab.recommender.settings import Settings
from trimtab.runtime.log import build_logger
from trimtab.usage.daily_store import DailyStore
from trimtab.usage.errors import UsageFault

NOW = (FIRST_DAY + 3) * DAY - HOUR
"""In the last hour of the third day: two days are over."""


def live() -> LiveHistory:
    history = LiveHistory()
    history.add_batch(history_of("web", days=3))
    return history


def writer(folder: Path, elapsed: list[float]) -> DailyHistoryWriter:
    log = build_logger("error", stream=io.StringIO())
    return DailyHistoryWriter(DailyStore(str(folder)), "prod", log, lambda: elapsed[0])


def test_days_that_are_over_are_written_once_also_by_the_next_leader(tmp_path: Path) -> None:
    first = writer(tmp_path, [0.0])
    assert [first.write_due(live(), NOW), first.write_due(live(), NOW)] == [2, 0]
    assert [one.day - FIRST_DAY for one in DailyStore(str(tmp_path)).list_days()] == [0, 1]
    assert writer(tmp_path, [0.0]).write_due(live(), NOW) == 0
    assert writer(tmp_path, [0.0]).write_due(live(), NOW + 3 * HOUR) == 1


def test_a_store_that_does_not_answer_is_asked_again_after_a_pause(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    elapsed = [0.0]
    failing = writer(tmp_path / "file", elapsed)
    with pytest.raises(UsageFault):
        failing.write_due(live(), NOW)
    assert failing.write_due(live(), NOW) == 0
    elapsed[0] = RETRY_SECONDS
    with pytest.raises(UsageFault):
        failing.write_due(live(), NOW)


def test_a_history_without_the_name_of_the_cluster_is_refused_at_the_start() -> None:
    with pytest.raises(ValueError, match="TRIMTAB_RECOMMENDER_CLUSTER_NAME"):
        check_daily_history(Settings(daily_history="/history"))
    check_daily_history(Settings(daily_history="/history", cluster_name="prod"))
    check_daily_history(Settings())
