"""A pair swapped on disk is served from the next connection on; half a pair never is."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

import certs
from tests.certs.test_ca import shake_hands


class World:
    """A folder with a pair, a loader over it, and what the loader told."""

    def __init__(self, path: Path) -> None:
        self.path, self.told = path, list[certs.Problem | None]()
        self.first = self.issued()
        certs.write_folder(path, self.first)
        self.loader = certs.CertificateLoader(path, self.told.append)

    def issued(self) -> certs.CertificateFiles:
        return certs.issue(["localhost"], now=datetime.now(UTC))

    def serves(self, folder: certs.CertificateFiles) -> bool:
        return shake_hands(self.loader.front, folder.bundle, "localhost") == folder.pair.read_leaf()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_new_pair_is_served_from_the_next_connection_on(world: World) -> None:
    second = world.issued()
    certs.write_folder(world.path, second)
    assert world.serves(second)
    assert world.told == [None]


def test_a_half_written_pair_keeps_the_old_one(world: World) -> None:
    second = world.issued()
    (world.path / "tls.key").write_bytes(second.pair.key)
    assert world.serves(world.first)
    (world.path / "tls.crt").write_bytes(second.pair.certificate)
    assert world.serves(second)


@pytest.mark.parametrize("content", [b"", b"-----BEGIN CERTIFICATE-----\nMIIB", b"\x00" * 99])
def test_a_certificate_cut_short_keeps_the_old_pair(world: World, content: bytes) -> None:
    (world.path / "tls.crt").write_bytes(content)
    assert world.serves(world.first)


def test_files_that_vanish_keep_the_old_pair(world: World) -> None:
    (world.path / "tls.key").unlink()
    assert world.serves(world.first)


def test_a_refused_pair_is_told_once_and_not_per_handshake(world: World) -> None:
    (world.path / "tls.key").write_bytes(world.issued().pair.key)
    for _ in range(3):
        world.loader.current_context()
    assert [problem and problem.code for problem in world.told] == ["unusable-pair"]


def test_nothing_is_loaded_again_while_nothing_changes(world: World) -> None:
    assert world.loader.current_context() is world.loader.current_context()


def test_a_folder_mounted_by_symlink_is_followed(tmp_path: Path) -> None:
    one, two = certs.issue(["a"], now=datetime.now(UTC)), certs.issue(["a"], now=datetime.now(UTC))
    certs.write_folder(tmp_path / "..1", one)
    certs.write_folder(tmp_path / "..2", two)
    (tmp_path / "..data").symlink_to("..1")
    for name in ("ca.crt", "tls.crt", "tls.key"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    loader = certs.CertificateLoader(tmp_path)
    (tmp_path / "..new").symlink_to("..2")
    (tmp_path / "..new").rename(tmp_path / "..data")
    assert shake_hands(loader.front, two.bundle, "a") == two.pair.read_leaf()


def test_a_server_does_not_start_without_a_pair(tmp_path: Path) -> None:
    with pytest.raises(certs.MissingFile, match="is not in"):
        certs.CertificateLoader(tmp_path)


def test_an_encrypted_key_is_refused_and_asks_nobody(world: World) -> None:
    key = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIHs\n-----END ENCRYPTED PRIVATE KEY-----\n"
    (world.path / "tls.key").write_bytes(key)
    assert world.serves(world.first)
