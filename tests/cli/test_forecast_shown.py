"""The forecast of a pool's room, as commands show it."""

from trimtab.cluster.pool import Pool
from trimtab.compaction.room_forecast import (
    SLOT_SECONDS,
    DemandHistory,
    NeededRoom,
    describe_forecast,
    forecast_rooms,
)

NOW = 1_800_000_000
POOL = Pool(name="web")
# It rises by 60 millicores an hour.
HISTORY = DemandHistory(first=NOW // SLOT_SECONDS - 3, cpu=(100, 110, 120, 130), memory=(0,) * 4, judged=4, kept=3)


def test_only_pools_that_keep_room_and_have_a_history_have_a_forecast() -> None:
    others = (Pool(name="off", keeps_forecast=False), Pool(name="new"))
    histories = {"web": HISTORY, "off": HISTORY, "new": DemandHistory()}
    rooms = forecast_rooms(histories, (POOL, *others), NOW)
    assert rooms == {"web": NeededRoom(millicores=60, mebibytes=0, basis="the last half hour")}


def test_the_sentence_has_the_amounts_the_time_and_the_quality() -> None:
    text = describe_forecast(POOL, forecast_rooms({"web": HISTORY}, [POOL], NOW)["web"], HISTORY)
    facts = ("pool web", "0.1 cores", "60 minutes", "the last half hour", "3 of 4")
    assert [fact for fact in facts if fact not in text] == []
