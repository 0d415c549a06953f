"""A real Spark session on this machine is closed to other machines and other users."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fleet.spark_cluster import environment, missing_part

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing_part()), reason=missing_part())]

SESSION = """
import sys
from dataclasses import dataclass
from trimtab.fleet.engine_spark import SparkEngine

class Double:
    def run_item(self, item):
        return item + item

engine = SparkEngine("local[2]")
assert engine.run_items(Double(), [b"a", b"b"]) == [b"aa", b"bb"]
context = engine._session.sparkContext
print(context._gateway.proc.pid, context.getConf().get("spark.authenticate"), flush=True)
sys.stdin.readline()
engine.close()
"""
"""Runs a job, prints the process of the driver and whether it authenticates, and waits for a line."""


def listening_addresses(pid: int) -> set[str]:
    """Returns the addresses on which a process listens."""
    links = [descriptor.readlink() for descriptor in Path(f"/proc/{pid}/fd").iterdir() if descriptor.is_symlink()]
    inodes = {str(link)[8:-1] for link in links if str(link).startswith("socket:[")}
    rows = [
        line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()
    ]
    return {_address(row[1].partition(":")[0]) for row in rows if row[3] == "0A" and row[9] in inodes}


def _address(text: str) -> str:
    """Returns an address as /proc/net writes it, in words of 32 bits of this machine's byte order."""
    packed = b"".join(int(text[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(text), 8))
    if len(packed) == 4:
        return socket.inet_ntop(socket.AF_INET, packed)
    return socket.inet_ntop(socket.AF_INET6, packed).removeprefix("::ffff:")


def test_a_local_session_listens_only_on_loopback_and_authenticates() -> None:
    # Of the environment, only Trimtab's own configuration may keep it on loopback.
    outside = {name: value for name, value in environment().items() if name != "SPARK_LOCAL_IP"}
    process = subprocess.Popen(
        [sys.executable, "-c", SESSION],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=outside,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline().split()
    try:
        assert len(line) == 2, process.communicate("\n")[1][-2000:]
        addresses = listening_addresses(int(line[0]))
    finally:
        if process.poll() is None:
            process.communicate("\n", timeout=120)
    assert (addresses, line[1]) == ({"127.0.0.1"}, "true")
