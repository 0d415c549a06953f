"""`make bench-data` against a server on loopback: what is stored is what was expected, or nothing."""

import gzip
import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.bench.bench_data import BITBRAINS, FILES, MACHINES, BenchDataError, DataFile, derive_july, fetch, locate

CONTENT = b"sn,cpu_milli\nnode-0,32000\n"
HEADER = ";\t".join(("Time", "CPU cores", "CPU capacity", "CPU usage", "CPU usage [%]", "Memory capacity", "Memory"))


@contextmanager
def served(content: bytes, status: int = 200) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/file.csv"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def data_file(url: str, content: bytes = CONTENT) -> DataFile:
    return DataFile("file.csv", url, hashlib.sha256(content).hexdigest(), "Apache-2.0", "file.csv")


def test_a_file_with_the_expected_checksum_is_stored(tmp_path: Path) -> None:
    with served(CONTENT) as url:
        path = fetch(data_file(url), tmp_path)
    assert path.read_bytes() == CONTENT


def test_a_file_that_is_here_is_not_fetched_again(tmp_path: Path) -> None:
    (tmp_path / "file.csv").write_bytes(b"here")
    assert fetch(data_file("http://127.0.0.1:1/never"), tmp_path).read_bytes() == b"here"


def test_a_file_with_another_checksum_is_not_stored(tmp_path: Path) -> None:
    with served(b"another file") as url, pytest.raises(BenchDataError, match="SHA-256"):
        fetch(data_file(url), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_address_that_answers_with_an_error_is_named(tmp_path: Path) -> None:
    with served(b"", status=404) as url, pytest.raises(BenchDataError, match=url):
        fetch(data_file(url), tmp_path)


def archive() -> bytes:
    """Every machine has a sample before July, two with one time, and one without a provisioned CPU."""
    rows = (
        "1372636799;\t1;\t2000.0;\t100.0;\t5.0;\t0.0;\t5.9",
        "1372636800;\t2;\t2000.0;\t123.4;\t6.2;\t0.0;\t5.9",
        "1372636800;\t2;\t2000.0;\t999.9;\t6.2;\t0.0;\t7.0",
        "1372637100;\t2;\t0.0;\t0.0;\t0.0;\t0.0;\t0.0",
    )
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w") as files:
        for machine in MACHINES:
            files.writestr(f"rnd/2013-7/{machine}.csv", "\n".join((HEADER, *rows)) + "\n")
    return stored.getvalue()


def test_the_samples_of_july_are_derived_from_the_published_archive() -> None:
    lines = derive_july(archive()).decode().splitlines()
    assert lines[:3] == [
        "timestamp,workload,container,cpu,memory",
        "1372636800,Deployment/vm-2,app,0.1234,5120",
        "1372637100,Deployment/vm-2,app,0,0",
    ]
    assert len(lines) == 1 + 2 * len(MACHINES)


def test_a_derived_file_is_checked_after_it_was_derived_and_stored_compressed(tmp_path: Path) -> None:
    content = derive_july(archive())
    with served(archive()) as url:
        file = replace(data_file(url, content), name="july.csv.gz", derive=derive_july)
        path = fetch(file, tmp_path)
    assert gzip.decompress(path.read_bytes()) == content


def test_an_archive_that_is_none_is_named(tmp_path: Path) -> None:
    with served(b"not an archive") as url, pytest.raises(BenchDataError, match="not the archive"):
        fetch(replace(data_file(url), derive=derive_july), tmp_path)


def test_a_fetched_file_is_preferred_to_a_shared_one(tmp_path: Path) -> None:
    fetched, shared = tmp_path / "fetched" / BITBRAINS, tmp_path / "shared" / "data" / FILES[BITBRAINS].shared_path
    shared.parent.mkdir(parents=True)
    shared.touch()
    assert locate(BITBRAINS, tmp_path / "fetched", tmp_path / "shared") == shared
    fetched.parent.mkdir()
    fetched.touch()
    assert locate(BITBRAINS, tmp_path / "fetched", tmp_path / "shared") == fetched
