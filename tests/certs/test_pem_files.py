"""What stands on disk: complete or untouched, and the keys for us alone."""

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import certs

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    folder = certs.issue(["a"], now=NOW)
    certs.write_folder(tmp_path / "new" / "folder", folder)
    assert certs.read_folder(tmp_path / "new" / "folder") == folder


def test_keys_are_readable_by_us_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        certs.write_folder(tmp_path, certs.issue(["a"], now=NOW))
    finally:
        os.umask(before)
    modes = {file.name: oct(file.stat().st_mode & 0o777) for file in tmp_path.iterdir()}
    assert modes == {"ca.crt": "0o644", "tls.crt": "0o644", "ca.key": "0o600", "tls.key": "0o600"}


def test_a_folder_that_cannot_be_written_says_so_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "tls.key").mkdir()
    with pytest.raises(certs.UnwritableFile, match="cannot be written"):
        certs.write_folder(tmp_path, certs.issue(["a"], now=NOW))
    assert not [file.name for file in tmp_path.iterdir() if file.name.startswith(".")]


def test_a_writer_that_stopped_before_the_certificate_leaves_a_named_problem(tmp_path: Path) -> None:
    certs.write_folder(tmp_path, certs.issue(["a"], now=NOW))
    (tmp_path / "tls.key").write_bytes(certs.issue(["a"], now=NOW).pair.key)
    assert [problem.code for problem in certs.read_status(tmp_path, NOW).problems] == ["key-mismatch"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(certs.MissingFile, match=r"ca\.crt is not in"):
        certs.read_folder(tmp_path)


def test_a_folder_without_the_authority_key_only_serves(tmp_path: Path) -> None:
    certs.write_folder(tmp_path, replace(certs.issue(["a"], now=NOW), authority_key=None))
    status = certs.read_status(tmp_path, NOW)
    assert (status.is_usable, status.renewable) == (True, False)


def test_status_tells_names_and_days(tmp_path: Path) -> None:
    certs.write_folder(tmp_path, certs.issue(["a", "127.0.0.1"], now=NOW, life=timedelta(days=9)))
    status = certs.read_status(tmp_path, NOW + timedelta(days=1))
    assert (status.names, status.days_left, status.is_usable, status.problems) == (("a", "127.0.0.1"), 8.0, True, ())


def test_status_of_nothing_is_a_problem_and_not_an_error(tmp_path: Path) -> None:
    status = certs.read_status(tmp_path / "nowhere", NOW)
    assert ([problem.code for problem in status.problems], status.is_usable) == (["missing"], False)


def test_status_names_a_key_that_everybody_can_read(tmp_path: Path) -> None:
    certs.write_folder(tmp_path, certs.issue(["a"], now=NOW))
    (tmp_path / "tls.key").chmod(0o644)
    status = certs.read_status(tmp_path, NOW)
    assert ([problem.code for problem in status.problems], status.is_usable) == (["key-open"], True)


def test_an_expired_pair_is_not_usable(tmp_path: Path) -> None:
    certs.write_folder(tmp_path, certs.issue(["a"], now=NOW))
    status = certs.read_status(tmp_path, NOW + timedelta(days=400))
    assert status.days_left == pytest.approx(-35)
    assert not status.is_usable
