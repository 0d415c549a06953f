"""Whole days from Prometheus, and what they add up to."""

from tests.cli.recommending import prometheus
from tests.fleet.histories import FIRST_DAY
from tests.usage.fake_prometheus import serving
from trimtab.histogram.batch_history import BatchHistory
from trimtab.histogram.daily_rows import merge_rows
from trimtab.histogram.time_buckets import DAY, HOUR
from trimtab.usage.daily_ingest import DayReader, last_complete_day
from trimtab.usage.http_client import HttpApi
from trimtab.usage.owners import OwnerIndex
from trimtab.usage.prometheus import Prometheus, QueryPlan
from trimtab.usage.series import add_all_series


def test_days_add_up_to_what_one_query_of_all_of_them_gives() -> None:
    with serving(prometheus) as server:
        read = Prometheus(HttpApi(server.url, {}, None, None, None), QueryPlan(step_seconds=1800))
        rows = [row for day in range(3) for row in DayReader(read).read_day(FIRST_DAY + day).rows]
        whole = BatchHistory()
        parts = read.plan_queries(FIRST_DAY * DAY, (FIRST_DAY + 3) * DAY - 1)
        add_all_series(whole, read.read_series(parts), OwnerIndex())
    (container,) = whole.list_containers()
    merged = merge_rows(rows, 14)
    for resource in ("cpu", "memory"):
        assert merged.windows[resource].dump() == whole.compressed_window(container, resource).dump()


def test_a_day_is_complete_an_hour_after_its_end() -> None:
    assert last_complete_day(FIRST_DAY * DAY + HOUR) == FIRST_DAY - 1
    assert last_complete_day(FIRST_DAY * DAY + HOUR - 1) == FIRST_DAY - 2
