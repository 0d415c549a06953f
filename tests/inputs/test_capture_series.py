"""A series of captures on a disk: what is broken, missing or of another cluster has a name, and nothing is made up."""

import gzip
from pathlib import Path

import pytest

from tests.autoscaling.replay.simulated_captures import CLUSTER_UID, encode_capture_file, namespace_object
from trimtab.cluster.capture_series import ClusterChange, RoundGap
from trimtab.inputs.capture_series import SeriesFolder, SeriesReader, find_series_files
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


def read(path: Path) -> tuple[SeriesReader, list[ClusterChange | RoundGap]]:
    reader = SeriesReader(find_series_files([str(path)]))
    return reader, list(reader.iterate_changes())


def times(changes: list[ClusterChange | RoundGap]) -> list[int]:
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
    assert [type(one) for one in changes] == [ClusterChange, RoundGap, ClusterChange]
    assert len(reader.notes) == 1


def test_rounds_of_a_clock_that_went_back_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, (600, capture("a")))
    write(tmp_path / "later", (300, capture("a")), (900, capture("a")))
    files = (*find_series_files([str(tmp_path)]), *find_series_files([str(tmp_path / "later")]))
    reader = SeriesReader(files)
    assert times(list(reader.iterate_changes())) == [600, 900]
    assert len(reader.notes) == 1


def test_what_changed_in_rounds_that_are_left_out_is_part_of_the_next(tmp_path: Path) -> None:
    write(tmp_path, (600, capture("a", "gone")))
    write(tmp_path / "later", (300, capture("a", "b", "short")), (400, capture("b")), (900, capture("b", "c")))
    files = (*find_series_files([str(tmp_path)]), *find_series_files([str(tmp_path / "later")]))
    last = list(SeriesReader(files).iterate_changes())[-1]
    assert isinstance(last, ClusterChange)
    assert {name for _, _, name in last.changed} == {"b", "c"}
    assert {name for _, _, name in last.gone} >= {"a", "gone"}


def test_many_rounds_and_gaps_make_few_notes(tmp_path: Path) -> None:
    write(tmp_path, *((number * 7200, capture("a")) for number in range(10)))
    write(tmp_path / "second", *((number * 7200 + 60, capture("a")) for number in range(9)))
    files = (*find_series_files([str(tmp_path)]), *find_series_files([str(tmp_path / "second")]))
    reader = SeriesReader(files)
    assert times(list(reader.iterate_changes())) == [number * 7200 for number in range(10)]
    assert len(reader.notes) == 2
    assert "9 times" in reader.notes[1]


def test_a_file_without_its_first_round_counts_for_nothing(tmp_path: Path) -> None:
    folder = write(tmp_path, (0, capture("a")), (300, capture("a", "b")))
    assert folder.file is not None
    lines = gzip.decompress(folder.file.read_bytes()).splitlines()
    folder.file.write_bytes(gzip.compress(b"\n".join(lines[4:])))
    write(tmp_path / "before", (-300, capture("a")))
    files = (*find_series_files([str(tmp_path / "before")]), folder.file)
    reader = SeriesReader(files)
    assert times(list(reader.iterate_changes())) == [-300]
    assert len(reader.notes) == 1


def test_a_second_process_with_another_interval_leaves_no_gap(tmp_path: Path) -> None:
    write(tmp_path, (0, capture("a")), (300, capture("a")))
    SeriesFolder(tmp_path, MINUTES).append_round(MONDAY + 600, capture("a"))
    reader, changes = read(tmp_path)
    assert times(changes) == [0, 300, 600]
    assert reader.notes == []


def test_rounds_that_name_no_cluster_are_named(tmp_path: Path) -> None:
    write(tmp_path, (0, capture("a")), (300, encode_capture_file([namespace_object("a", "a")])))
    assert len(read(tmp_path)[0].notes) == 1


def test_a_file_counts_once_and_files_of_one_second_stand_in_their_order(tmp_path: Path) -> None:
    names = ["2026-03-02T000000Z.rounds.gz", *(f"2026-03-02T000000Z-{number}.rounds.gz" for number in (1, 2, 10))]
    for name in names:
        (tmp_path / name).touch()
    files = find_series_files([str(tmp_path), str(tmp_path / names[0]), str(tmp_path / ".." / tmp_path.name)])
    assert [file.name for file in files] == names


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name too long"):
        find_series_files([str(tmp_path / ("x" * 300))])


def test_files_without_any_round_are_named_with_what_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json.gz"
    file.write_bytes(gzip.compress(capture("a")))
    with pytest.raises(UsageError, match=r"cluster\.json\.gz: .*cluster\.json\.gz:1"):
        list(SeriesReader(find_series_files([str(file)])).iterate_changes())


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
