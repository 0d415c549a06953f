"""A checkpoint as versions before the one of `stored` wrote it: read, and never written.

{"schema": 1, "checksum": "<sha256 of the rest>", "count": 4, "widths": {"shop": 2}, "until": {"shop": 1767571200},
  "workloads":
  {"NAMESPACE/KIND/NAME": {"CONTAINER": {"cpu": "<base64>", "memory": "<base64>",
                                         "peaks": {"POD": [interval, bytes]}, "kills": {"POD": second},
                                         "oom": [second, bytes, count, last second]}}}}

A part of a diary as text, for a checkpoint, and back.

A day that is over is stored once, apart from what still changes. So there are two kinds of texts of one format: one
without `day` holds what no text of a day holds yet (today, peaks that run, kills), one with `day` holds that day.

    {"schema": 2, "checksum": "<sha256 of the rest>", "count": 4, "widths": {"shop": 2}, "until": {"shop": 1767571200},
      "day": 20457, "workloads": "<base64 of zlib of MessagePack>"}

    workloads: {"NAMESPACE/KIND/NAME": {"CONTAINER": [cpu, memory, peaks, kills, oom, pods]}}
    cpu, memory: [first second, last second, [hours of each day], days as `packed` has them]
    peaks: {"POD": [interval, bytes]}, kills: {"POD": second}, oom: [second, bytes, count, last second]
    pods: {"cpu": {"POD": [last second, values, microcores on average]}, "memory": {"POD": [.., .., KiB on average]}}

Several texts may tell of the same day of a container: after a value that came late, or where a process ended between
two writes. Values are only added to a day, so the copy that counts more of them is the newer one, and counts alone.

Schema 1, which had every day of a container in one text, is read as well.
"""

import base64
import binascii
import hashlib
import zlib
from collections.abc import Collection, Iterable
from typing import Annotated, Literal

import msgspec

from trimtab.cluster.reason import Unreadable
from trimtab.cluster.recommendation import ShardLayout
from trimtab.histogram.batch_history import RESOURCES, ContainerKey
from trimtab.histogram.daily_window import DailyHistograms, DamagedHistogram, pack, unpack
from trimtab.histogram.live_history import LiveHistory
from trimtab.histogram.time_buckets import DAY


class StoredContainerV1(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One container."""

    cpu: str = ""
    memory: str = ""
    peaks: dict[str, tuple[int, float]] = {}
    kills: dict[str, int] = {}
    oom: tuple[int, float, int, int] | None = None


class ShardV1(msgspec.Struct, frozen=True, kw_only=True):
    """What one ConfigMap holds."""

    schema: int
    checksum: str = ""
    count: int = 1
    widths: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    until: dict[str, int] = {}
    workloads: dict[str, dict[str, StoredContainerV1]] = {}


def decode_v1(text: str) -> ShardV1:
    """Raises Damaged where it was changed or cut short, and what msgspec raises."""
    found = msgspec.json.decode(text, type=ShardV1)
    if found.checksum != checksum(found):
        raise DamagedHistogram("the checksum does not match: it was changed or cut short")
    return found


def checksum(shard: "ShardV1 | _Text") -> str:
    """SHA-256 of all but itself, keys sorted."""
    return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(shard, checksum=""), order="sorted")).hexdigest()


def window(text: str) -> DailyHistograms | None:
    """None where there is none. Raises Damaged or binascii.Error."""
    return DailyHistograms.load(base64.b64decode(text, validate=True)) if text else None


SCHEMA = 2
READABLE = (1, SCHEMA)


class WindowPart(msgspec.Struct, frozen=True, array_like=True):
    """Some days of one resource of one container."""

    first: int
    last: int
    hours: tuple[int, ...]
    """A bit for each hour in which something was seen, of each day in turn (see `hours`)."""
    days: bytes
    """The counts of each day in turn (see `packed`)."""


_NotNegative = Annotated[int, msgspec.Meta(ge=0)]
PodPart = tuple[_NotNegative, Annotated[int, msgspec.Meta(ge=1)], _NotNegative]
Resource = Literal["cpu", "memory"]
POD_UNIT: dict[Resource, float] = {"cpu": 1e-6, "memory": 1024.0}
"""What averages of pods are counted in."""


class StoredContainer(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One container."""

    cpu: WindowPart | None = None
    memory: WindowPart | None = None
    peaks: dict[str, tuple[int, float]] = {}
    kills: dict[str, int] = {}
    oom: tuple[int, float, int, int] | None = None
    """The container's record of kills for want of memory: see `OomRecord`."""

    pods: dict[Resource, dict[str, PodPart]] = {}
    """What each pod of several uses on average: see `PodAverageIndex.kept`. Versions before neither wrote nor read
    it."""

    def part(self, resource: str) -> WindowPart | None:
        return self.cpu if resource == "cpu" else self.memory


Workloads = dict[str, dict[str, StoredContainer]]


class _Text(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """As it is written."""

    schema: int
    checksum: str = ""
    count: int = 1
    widths: dict[str, int] = {}
    until: dict[str, int] = {}
    day: int | None = None
    workloads: bytes = b""


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """What one ConfigMap holds."""

    count: int = 1
    """Of how many shards this was one."""
    widths: dict[str, int] = {}
    """Namespace → over how many shards it is spread."""
    until: dict[str, int] = {}
    day: int | None = None
    """The only day of which it tells; None: the days that no other text tells of."""
    workloads: Workloads = {}


def workload(container: ContainerKey) -> str:
    """As shards call it."""
    return f"{container.namespace}/{container.kind}/{container.workload}"


def encode(diary: LiveHistory, containers: Iterable[ContainerKey], layout: ShardLayout) -> str:
    """What the diary holds of these containers and no text of a day does. `until` of a namespace that has none among
    them is left out."""
    containers = list(containers)
    namespaces = {container.namespace for container in containers}
    return _written(
        _Text(
            schema=SCHEMA,
            count=layout.count,
            widths={name: width for name, width in layout.widths.items() if name in namespaces},
            until={name: at for name, at in diary.until.items() if name in namespaces},
            workloads=_pressed(_workloads((container, _changing(diary, container)) for container in containers)),
        )
    )


def encode_day(diary: LiveHistory, containers: Iterable[ContainerKey], day: int) -> str:
    """One day of these containers."""
    parts = (
        (one, StoredContainer(_part(diary, one, "cpu", (day,)), _part(diary, one, "memory", (day,))))
        for one in containers
    )
    return _written(_Text(schema=SCHEMA, day=day, workloads=_pressed(_workloads(parts))))


def unstored_days(diary: LiveHistory, containers: Iterable[ContainerKey]) -> dict[int, list[ContainerKey]]:
    """Day → those of these containers of which it holds something that no text of that day does, in order."""
    found: dict[int, list[ContainerKey]] = {}
    for container in containers:
        windows = [w for r in RESOURCES if (w := diary.windows.get((container, r))) is not None]
        for day in {day for window in windows for day in window.unstored_days()}:
            found.setdefault(day, []).append(container)
    return dict(sorted(found.items()))


def set_stored(diary: LiveHistory, containers: Iterable[ContainerKey], day: int) -> None:
    """That day of these containers is stored in a text of its own."""
    for container in containers:
        for resource in RESOURCES:
            window = diary.windows.get((container, resource))
            if window is not None:
                window.set_stored(day)


def decode(where: str, text: str) -> Shard | Unreadable:
    """Unreadable where it was changed, cut short or written by another version: nothing of it is taken then."""
    try:
        schema = msgspec.json.decode(text, type=_Schema).schema
        if schema not in READABLE:
            return Unreadable(where, f"schema {schema}; this version reads schema 1 and {SCHEMA}")
        found = _of_schema_1(text) if schema == 1 else _of_schema_2(text)
        for containers in found.workloads.values():
            for one in containers.values():
                for resource in RESOURCES:
                    _check(one.part(resource))
    except (msgspec.DecodeError, UnicodeError, RecursionError, DamagedHistogram, zlib.error, binascii.Error) as error:
        return Unreadable(where, str(error))
    return found


class _Schema(msgspec.Struct, frozen=True):
    schema: int


def _of_schema_2(text: str) -> Shard:
    found = msgspec.json.decode(text, type=_Text)
    if found.checksum != checksum(found):
        raise DamagedHistogram("the checksum does not match: it was changed or cut short")
    workloads = msgspec.msgpack.decode(zlib.decompress(found.workloads), type=Workloads)
    return Shard(count=found.count, widths=found.widths, until=found.until, day=found.day, workloads=workloads)


def _of_schema_1(text: str) -> Shard:
    found = decode_v1(text)
    workloads = {
        name: {container: _from_schema_1(one) for container, one in containers.items()}
        for name, containers in found.workloads.items()
    }
    widths = {} if found.widths is msgspec.UNSET else found.widths
    return Shard(count=found.count, widths=widths, until=found.until, workloads=workloads)


def _from_schema_1(one: StoredContainerV1) -> StoredContainer:
    windows = (window(one.cpu), window(one.memory))
    cpu, memory = (_of_window(w, w.by_day().keys()) if w is not None else None for w in windows)
    return StoredContainer(cpu, memory, one.peaks, one.kills, one.oom)


def _check(part: WindowPart | None) -> None:
    if part is not None and len(unpack(part.days)) != len(part.hours):
        raise DamagedHistogram("the days and their hours are not as many")


def _changing(diary: LiveHistory, container: ContainerKey) -> StoredContainer:
    windows = {r: w for r in RESOURCES if (w := diary.windows.get((container, r))) is not None}
    cpu, memory = (_part(diary, container, r, windows[r].unstored_days()) if r in windows else None for r in RESOURCES)
    peaks = diary.peaks.get(container)
    running = dict(peaks.running) if peaks is not None else {}
    kills = {pod: diary.kills[container, pod] for pod in running if (container, pod) in diary.kills}
    record = diary.oom_records.get(container)
    oom = (record.at, record.used, record.count, record.last) if record is not None else None
    return StoredContainer(cpu, memory, running, kills, oom, _pods(diary, container))


def _pods(diary: LiveHistory, container: ContainerKey) -> dict[Resource, dict[str, PodPart]]:
    found: dict[Resource, dict[str, PodPart]] = {}
    for resource, unit in POD_UNIT.items():
        kept = diary.pods.kept((container, resource))
        if kept:
            found[resource] = {name: (last, count, round(mean / unit)) for name, (last, count, mean) in kept.items()}
    return found


def _part(diary: LiveHistory, container: ContainerKey, resource: str, days: Collection[int]) -> WindowPart | None:
    window = diary.windows.get((container, resource))
    return _of_window(window, days) if window is not None and days else None


def _of_window(window: DailyHistograms, days: Collection[int]) -> WindowPart | None:
    """The moments are those of the window, as far as these days go: another text tells of the others."""
    held = sorted(window.counts_of(days).items())
    if not held or not window.last:
        return None
    first, last = held[0][0] * DAY, held[-1][0] * DAY + DAY - 1
    return WindowPart(
        max(window.first, first),
        min(window.last, last),
        tuple(window.hours_of(day) for day, _ in held),
        b"".join(pack(day, counts, over=day != window.newest) for day, counts in held),
    )


def _workloads(found: Iterable[tuple[ContainerKey, StoredContainer]]) -> Workloads:
    """Without those of which there is nothing to tell."""
    workloads: Workloads = {}
    for container, stored in found:
        if stored != StoredContainer():
            workloads.setdefault(workload(container), {})[container.name] = stored
    return workloads


def _pressed(workloads: Workloads) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(workloads, order="sorted"))


def _written(bare: _Text) -> str:
    return msgspec.json.encode(msgspec.structs.replace(bare, checksum=checksum(bare)), order="sorted").decode()
