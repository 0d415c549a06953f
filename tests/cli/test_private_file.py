"""Files with data of a cluster are new files that only their owner may read."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from trimtab.cli.output import write_text
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.private_file import write_private_file


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_that_others_may_read_is_replaced_by_one_that_they_may_not(tmp_path: Path) -> None:
    path = tmp_path / "capture.json"
    path.write_text("old")
    path.chmod(0o644)
    write_private_file(str(path), b"new")
    assert (path.read_bytes(), mode_of(path)) == (b"new", 0o600)


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "theirs", tmp_path / "report.txt"
    target.write_text("theirs")
    link.symlink_to(target)
    write_text("ours", str(link))
    assert (target.read_text(), link.read_text(), link.is_symlink()) == ("theirs", "ours", False)


@pytest.mark.parametrize("name", ["", "missing/file"])
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="a file that can be written"):
        write_private_file(str(tmp_path / name), b"x")
    assert list(tmp_path.iterdir()) == []


def test_a_device_is_written_to() -> None:
    write_private_file("/dev/null", b"x")


IN_MEMORY = Path("/dev/shm")


@pytest.fixture
def shared_memory() -> Iterator[Path]:
    """A folder of ordinary files below /dev."""
    if not IN_MEMORY.is_dir():
        pytest.skip("this system has no /dev/shm")
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        yield Path(folder)


def test_a_file_in_shared_memory_is_as_private_as_any_other(shared_memory: Path) -> None:
    write_private_file(str(shared_memory / "capture.json"), b"x")
    assert mode_of(shared_memory / "capture.json") == 0o600


@pytest.mark.parametrize("place", ["shared memory", "elsewhere"])
@pytest.mark.parametrize("target_type", ["file", "pipe", "nothing"])
def test_a_link_below_dev_is_replaced_too(shared_memory: Path, tmp_path: Path, place: str, target_type: str) -> None:
    folder = shared_memory if place == "shared memory" else tmp_path
    target, link = folder / "theirs", folder / "report.txt"
    if target_type == "file":
        target.write_text("theirs")
    elif target_type == "pipe":
        os.mkfifo(target)
    link.symlink_to(target)
    write_private_file(str(link), b"ours")
    assert (link.read_bytes(), link.is_symlink(), mode_of(link)) == (b"ours", False, 0o600)


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_private_file(str(pipe), b"x")
    assert (os.read(reader, 9), stat.S_ISFIFO(pipe.stat().st_mode)) == (b"x", True)
    os.close(reader)


def test_standard_output_is_written_to_by_its_name(capfd: pytest.CaptureFixture[str]) -> None:
    write_private_file("/dev/stdout", b"report")
    assert capfd.readouterr().out == "report"
