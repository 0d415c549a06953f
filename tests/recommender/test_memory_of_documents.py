"""A stored text that its author made to unpack or to describe as much as possible costs at most 64 MB of memory.

Whoever may write ConfigMaps in Trimtab's namespace may write such a text, and a process reads it at every start.
"""

import base64
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec
import pytest

from trimtab.histogram import checkpoint

MIB = 1 << 20
MAX_COST_MB = 64
NULL_DAY = struct.pack("<IHHBId", 1, 0, 0, 1, 0, 0.0)

# Prints what the decoder returned, and by how many MB the peak of the memory of the process has grown.
COST = """
import sys
from trimtab.cluster.published_reservations import decode_reservations
from trimtab.cluster.recommendation import decode as decode_recommendations
from trimtab.histogram.checkpoint import decode as decode_usage
from trimtab.histogram.import_history import restore_history
from trimtab.histogram.live_history import LiveHistory
from trimtab.recommender.reservations import _decode_stored
from trimtab.reservations.encode_history import decode_history

def decode_history_text(text):
    return decode_history("x", text, 8)

def decode_published(text):
    return decode_reservations(text)

def decode_and_restore_usage(text):
    shard = decode_usage("x", text)
    if type(shard).__name__ != "Unreadable":
        restore_history(LiveHistory(), [shard])
    return shard

def decode_shard(text):
    return decode_recommendations("x", text)

def decode_stored(text):
    return _decode_stored("x", text)

def peak_mb():
    status = open("/proc/self/status").read()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024

text = open(sys.argv[2]).read()
before = peak_mb()
result = globals()[sys.argv[1]](text)
print(type(result).__name__, round(peak_mb() - before))
"""


def packed_history(block: bytes, megabytes: int) -> str:
    head = b'{"version":1,"first":0,"last":0,"moments":1,"complete":1,"nodes":{},"max_pods_by_day":{},"groups":[['
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    blocks = [packer.compress(block * (MIB // len(block))) for _ in range(megabytes)]
    group = packer.compress(head + b'0,"cpu",1,1,1,1.0,[')
    return base64.b64encode(b"".join([group, *blocks, packer.compress(block[:-1] + b"]]]}"), packer.flush()])).decode()


def usage_of(parts: Iterable[bytes]) -> str:
    packer = zlib.compressobj(9)
    workloads = b"".join([*(packer.compress(part) for part in parts), packer.flush()])
    return checkpoint._with_checksum(checkpoint._Text(schema=2, workloads=workloads))


def usage_of_empty_containers(count: int) -> str:
    def parts() -> Iterator[bytes]:
        yield b"\x81\xa5a/b/c\xdf" + struct.pack(">I", count)
        for number in range(count):
            yield b"\xa4" + base64.b32encode(number.to_bytes(3, "big"))[:4] + b"\x90"

    return usage_of(parts())


def usage_of_days(count: int) -> str:
    days = b"".join(struct.pack("<I", number) + NULL_DAY[4:] for number in range(count))
    part = msgspec.msgpack.encode([[1, 1, [0] * count, days]])
    return usage_of([b"\x81\xa5a/b/c\x81\xa1a" + part])


def usage_of_schema_1(windows: int, size: int) -> str:
    window = struct.pack("<BBIqq", 3, 14, 1, 1, 1) + zlib.compress(bytes(42) + NULL_DAY * (size // len(NULL_DAY)), 9)
    container = checkpoint.StoredContainerV1(cpu=base64.b64encode(window).decode())
    bare = checkpoint.ShardV1(schema=1, workloads={"a/b/c": {str(number): container for number in range(windows)}})
    whole = msgspec.structs.replace(bare, checksum=checkpoint.compute_checksum(bare))
    return msgspec.json.encode(whole, order="sorted").decode()


def names_of(count: int) -> str:
    return ",".join(f'"{number}":{{}}' for number in range(count))


TEXTS: dict[str, tuple[str, str, Callable[[], str]]] = {
    "a history of 15 MB": ("decode_history_text", "Unreadable", lambda: packed_history(b"[0,0],", 15)),
    "a history of 100 MB": ("decode_history_text", "Unreadable", lambda: packed_history(b"[0,0],", 100)),
    "a history of one long number": ("decode_history_text", "Unreadable", lambda: packed_history(b"0", 15)),
    "a history in the largest group that is read": (
        "decode_history_text",
        "OverheadHistory",
        lambda: packed_history(b"[0,0]," * 60_000, 0),
    ),
    "usage of 400 thousand containers": (
        "decode_and_restore_usage",
        "Unreadable",
        lambda: usage_of_empty_containers(400_000),
    ),
    "usage of as many containers as are read": (
        "decode_and_restore_usage",
        "Shard",
        lambda: usage_of_empty_containers(70_000),
    ),
    "usage of half a million days": ("decode_and_restore_usage", "Unreadable", lambda: usage_of_days(500_000)),
    "usage of as many days as are read": ("decode_and_restore_usage", "Shard", lambda: usage_of_days(65_000)),
    "usage that unpacks to 150 MB": ("decode_and_restore_usage", "Unreadable", lambda: usage_of([bytes(MIB)] * 150)),
    "10 windows of schema 1 that unpack to 150 MB": (
        "decode_and_restore_usage",
        "Unreadable",
        lambda: usage_of_schema_1(10, 15 * MIB),
    ),
    "recommendations of empty workloads": (
        "decode_shard",
        "Unreadable",
        lambda: f'{{"schema":2,"workloads":{{{names_of(95_000)}}}}}',
    ),
    "recommendations of empty containers": (
        "decode_shard",
        "Unreadable",
        lambda: f'{{"schema":2,"workloads":{{"a":{{{names_of(95_000)}}}}}}}',
    ),
    "recommendations of as many containers as are read": (
        "decode_shard",
        "dict",
        lambda: f'{{"schema":2,"workloads":{{"a":{{{names_of(60_000)}}}}}}}',
    ),
    "reservations of many pools": (
        "decode_published",
        "Unreadable",
        lambda: f'{{"pools":[{",".join(["{}"] * 340_000)}]}}',
    ),
    "a stored history of brackets": ("decode_stored", "Unreadable", lambda: "[" * MIB),
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_hostile_text_costs_at_most_64_mb(text: str, tmp_path: Path) -> None:
    decoder, outcome, build = TEXTS[text]
    file = tmp_path / "text"
    file.write_text(build())
    command = [sys.executable, "-c", COST, decoder, str(file)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    kind, cost = run.stdout.split()
    assert (kind, int(cost) <= MAX_COST_MB) == (outcome, True), f"{text}: {kind}, {cost} MB"
