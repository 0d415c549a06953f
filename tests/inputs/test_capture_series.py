"""A series of captures on a disk: what is broken, missing or of another cluster has a name, and nothing is made up."""

import gzip
from pathlib import Path

import pytest

from tests.autoscaling.replay.simulated_captures import CLUSTER_UID, encode_capture_file, namespace_object
from trimtab.cluster.capture_series import ClusterChange
from trimtab.inputs.capture_series import SeriesFolder, SeriesGap, SeriesReader, find_series_files
from trimtab.inputs.command_faults import UsageError

MONDAY = 1_772_409_600
MINUTES = 60


def capture(*names: str, cluster: str = CLUSTER_UID) -> bytes:
    namespaces = [namespace_object("kube-system", cluster), *(namespace_object(name, name) for name in names)]
    return encode_capture_file(namespaces)


def write(path: Path, *rounds: tuple[int, bytes]) -> SeriesFolder:
    folder = SeriesFolder(path, 5 * MINUTES)
    for at, content in rounds:
        folder.append_round(MONDAY + at, content)
    return folder


def read(path: Path) -> tuple[SeriesReader, list[ClusterChange | SeriesGap]]:
    reader = SeriesReader(find_series_files([str(path)]))
    return reader, list(reader.iterate_changes())


def times(changes: list[ClusterChange | SeriesGap]) -> list[int]:
    return [one.at - MONDAY for one in changes if isinstance(one, ClusterChange)]


def test_a_series_is_read_as_it_was_written(tmp_path: Path) -> None:
    write(tmp_path, (0, capture("a")), (300, capture("a", "b")), (600, capture("b")))
    reader, changes = read(tmp_path)
    assert times(changes) == [0, 300, 600]
    assert isinstance(changes[2], ClusterChange)
    assert changes[2].gone == (("Namespace", "", "a"),)
    assert reader.notes == []


def test_each_day_has_a_file_that_can_be_read_alone(tmp_path: Path) -> None:
    write(tmp_path, (86_100, capture("a")), (86_400, capture("a")))
    first, second = find_series_files([str(tmp_path)])
    assert times(read(second)[1]) == [86_400]
    assert first.stat().st_mode & 0o077 == 0


def test_a_process_that_starts_again_continues_no_file(tmp_path: Path) -> None:
    write(tmp_path, (0, capture("a")))
    write(tmp_path, (300, capture("a")))
    assert len(find_series_files([str(tmp_path)])) == 2
    assert times(read(tmp_path)[1]) == [0, 300]


@pytest.mark.parametrize("lost", [20, 40])
def test_a_file_that_broke_off_keeps_its_whole_rounds(tmp_path: Path, lost: int) -> None:
    folder = write(tmp_path, (0, capture("a")), (300, capture("a", "b")))
    assert folder.file is not None
    content = folder.file.read_bytes()
    folder.file.write_bytes(content[:-lost])
    reader, changes = read(tmp_path)
    assert times(changes) == [0]
    assert any(note.endswith("after 1 round") for note in reader.notes)


def test_a_file_of_something_else_is_named(tmp_path: Path) -> None:
    write(tmp_path, (0, capture("a")))
    (tmp_path / "2026-03-03T000000Z.rounds.gz").write_bytes(gzip.compress(b"not a round\n"))
    (tmp_path / "2026-03-04T000000Z.rounds.gz").write_bytes(b"not gzip")
    reader, changes = read(tmp_path)
    assert times(changes) == [0]
    assert len(reader.notes) == 2


def test_a_gap_is_named_and_divides_the_series(tmp_path: Path) -> None:
    write(tmp_path, (0, capture("a")), (7200, capture("a")))
    reader, changes = read(tmp_path)
    assert [type(one) for one in changes] == [ClusterChange, SeriesGap, ClusterChange]
    assert len(reader.notes) == 1


def test_rounds_of_a_clock_that_went_back_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, (600, capture("a")))
    write(tmp_path / "later", (300, capture("a")), (900, capture("a")))
    files = (*find_series_files([str(tmp_path)]), *find_series_files([str(tmp_path / "later")]))
    reader = SeriesReader(files)
    assert times(list(reader.iterate_changes())) == [600, 900]
    assert len(reader.notes) == 1


def test_a_file_that_has_the_time_of_another_one_counts_once_and_has_one_note(tmp_path: Path) -> None:
    rounds = [(at, capture("a")) for at in (0, 300, 600)]
    write(tmp_path, *rounds)
    write(tmp_path, *rounds)
    reader, changes = read(tmp_path)
    assert times(changes) == [0, 300, 600]
    assert [" 3 rounds " in note for note in reader.notes] == [True]


def test_captures_of_two_clusters_are_refused(tmp_path: Path) -> None:
    write(tmp_path, (0, capture("a")))
    write(tmp_path, (300, capture("a", cluster="another")))
    with pytest.raises(UsageError, match="another"):
        read(tmp_path)


def test_a_folder_without_captures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"rounds\.gz"):
        find_series_files([str(tmp_path)])
