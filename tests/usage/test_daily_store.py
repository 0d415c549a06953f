"""A history in a folder: what is found, replaced, refused."""

from pathlib import Path

import pytest

from tests.fleet.histories import FIRST_DAY, daily_rows
from trimtab.usage.daily_store import DailyStore, StoredDay, day_path, select_days
from trimtab.usage.errors import GarbledSource, UnreachableSource


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    store, rows = DailyStore(str(tmp_path)), daily_rows("web", days=1)
    written = store.write_day("prod/eu 1", FIRST_DAY, rows)
    (stored_day,) = store.list_days()
    assert (stored_day, stored_day.cluster) == (written, "prod/eu 1")
    assert list(store.read_rows(stored_day)) == rows


def test_a_day_is_replaced_and_no_other_file_is_left(tmp_path: Path) -> None:
    store = DailyStore(str(tmp_path))
    store.write_day("prod", FIRST_DAY, daily_rows("web", days=1))
    store.write_day("prod", FIRST_DAY, daily_rows("api", days=1))
    (stored_day,) = store.list_days()
    assert {row.container.workload for row in store.read_rows(stored_day)} == {"api"}
    assert [path.name for path in (tmp_path / stored_day.path).parent.iterdir()] == ["usage.parquet"]


def test_a_folder_that_does_not_exist_is_an_empty_history(tmp_path: Path) -> None:
    assert DailyStore(str(tmp_path / "none")).list_days() == []


def test_other_files_are_ignored(tmp_path: Path) -> None:
    store = DailyStore(str(tmp_path))
    written = store.write_day("prod", FIRST_DAY, daily_rows("web", days=1))
    beside = Path(written.path).parent
    for name in (
        "README.md",
        "dt=x/cluster=prod/usage.parquet",
        "dt=2026-01-01/cluster=/usage.parquet",
        f"{beside}/.usage.parquet.new",
        f"{beside}/_SUCCESS",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("other")
    assert store.list_days() == [written]


def test_a_changed_byte_is_found_and_the_file_is_named(tmp_path: Path) -> None:
    store = DailyStore(str(tmp_path))
    written = store.write_day("prod", FIRST_DAY, daily_rows("web", days=1))
    path = tmp_path / written.path
    content = bytearray(path.read_bytes())
    content[len(content) // 4] ^= 0xFF
    path.write_bytes(bytes(content))
    with pytest.raises(GarbledSource, match=r"cluster=prod/usage\.parquet"):
        list(store.read_rows(written))


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / day_path("prod", FIRST_DAY)
    path.parent.mkdir(parents=True)
    path.write_text("not Parquet at all")
    with pytest.raises(GarbledSource, match=r"usage\.parquet"):
        list(DailyStore(str(tmp_path)).read_rows(StoredDay("prod", FIRST_DAY, day_path("prod", FIRST_DAY))))


def test_a_store_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnreachableSource, match="file"):
        DailyStore(str(tmp_path / "file")).write_day("prod", FIRST_DAY, daily_rows("web", days=1))


def test_the_last_days_are_selected_by_the_newest_file() -> None:
    files = [StoredDay("prod", day, "") for day in range(10, 20)]
    assert [one.day for one in select_days(files, None, 3)] == [17, 18, 19]
    assert [one.day for one in select_days(files, 12, 2)] == [11, 12]
