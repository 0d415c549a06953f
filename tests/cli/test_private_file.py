"""Files with data of a cluster are new files that only their owner may read."""

import stat
from pathlib import Path

import pytest

from trimtab.cli.main import UsageError
from trimtab.cli.output import write_text
from trimtab.cli.private_file import write_private_file


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
