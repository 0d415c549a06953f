"""The stored form of a live history, which consists of texts, and how these are written and read.

A day that is over is stored once, apart from what still changes. So there are two kinds of texts, in one format. A text
with the field `day` holds the usage of that day. A text without `day` holds everything that is in no text of a day yet:
today, open peaks, OOM kills.

    {"schema": 2, "checksum": "<sha256 of the rest>", "count": 4, "widths": {"shop": 2}, "until": {"shop": 1767571200},
      "day": 20457, "workloads": "<base64 of zlib of MessagePack>"}

    workloads: {"NAMESPACE/KIND/NAME": {"CONTAINER": [cpu, memory, peaks, kills, oom, pods]}}
    cpu, memory: [first second, last second, [hours of each day], days as `daily_window.pack_day` writes them]
    peaks: {"POD": [interval, bytes]}, kills: {"POD": second}, oom: [second, bytes, count, last second]
    pods: {"cpu": {"POD": [last second, values, microcores on average]}, "memory": {"POD": [.., .., KiB on average]}}

Several texts may hold the same day of a container: after a late value, or if a process ended between two writes. Values
are only ever added to a day, so the copy with more values is the newer one, and only that copy is used.

Schema 1, which earlier versions wrote, is read and never written. It has every day of a container in one text:

    {"schema": 1, "checksum": "<sha256 of the rest>", "count": 4, "widths": {"shop": 2}, "until": {"shop": 1767571200},
      "workloads":
      {"NAMESPACE/KIND/NAME": {"CONTAINER": {"cpu": "<base64>", "memory": "<base64>",
                                             "peaks": {"POD": [interval, bytes]}, "kills": {"POD": second},
                                             "oom": [second, bytes, count, last second]}}}}
"""

import base64
import binascii
import hashlib
import zlib
from collections.abc import Collection, Iterable
from typing import Annotated, Literal

import msgspec

from trimtab.cluster.bounded_decode import (
    MAX_DECODED_BYTES,
    BytesRefused,
    Unpacker,
    decode_json,
    decode_msgpack,
    unpack,
)
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.recommendation import ShardLayout
from trimtab.histogram.batch_history import RESOURCES, ContainerKey
from trimtab.histogram.daily_window import DAY_MEMORY, DailyHistograms, DamagedHistogram, iterate_days, pack_day
from trimtab.histogram.live_history import LiveHistory
from trimtab.histogram.time_buckets import DAY


class StoredContainerV1(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One container, as schema 1 stores it."""

    cpu: str = ""
    memory: str = ""
    peaks: dict[str, tuple[int, float]] = {}
    kills: dict[str, int] = {}
    oom: tuple[int, float, int, int] | None = None


class ShardV1(msgspec.Struct, frozen=True, kw_only=True):
    """The content of one ConfigMap in schema 1."""

    schema: int
    checksum: str = ""
    count: int = 1
    widths: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    until: dict[str, int] = {}
    workloads: dict[str, dict[str, StoredContainerV1]] = {}


def decode_v1(text: str) -> ShardV1:
    """Returns the content of a stored text of schema 1. Raises DamagedHistogram if the checksum does not match, and the
    errors of msgspec."""
    shard = decode_json(text, ShardV1)
    if shard.checksum != compute_checksum(shard):
        raise DamagedHistogram("the checksum of the checkpoint does not match, so its text was changed or cut short")
    return shard


def compute_checksum(shard: "ShardV1 | _Text") -> str:
    """Returns the SHA-256 of a shard without its checksum, with sorted keys, in hexadecimal."""
    return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(shard, checksum=""), order="sorted")).hexdigest()


def decode_window_v1(text: str, unpacker: Unpacker) -> DailyHistograms | None:
    """Returns a window of schema 1, or None if the text is empty. Raises DamagedHistogram, BytesRefused or
    binascii.Error."""
    return DailyHistograms.load(base64.b64decode(text, validate=True), unpacker) if text else None


CURRENT_SCHEMA = 2
READABLE_SCHEMAS = (1, CURRENT_SCHEMA)


class WindowPart(msgspec.Struct, frozen=True, array_like=True):
    """Some days of one resource of one container."""

    first: int
    last: int
    hours: tuple[int, ...]
    """For each day, in order, one bit for each hour in which usage was observed (see `time_buckets.Hours`)."""
    days: bytes
    """The histograms of the days, in order (see `daily_window.pack_day`)."""


_NonNegativeInt = Annotated[int, msgspec.Meta(ge=0)]
PodPart = tuple[_NonNegativeInt, Annotated[int, msgspec.Meta(ge=1)], _NonNegativeInt]
Resource = Literal["cpu", "memory"]
POD_UNIT: dict[Resource, float] = {"cpu": 1e-6, "memory": 1024.0}
"""Resource → the unit in which the averages of pods are stored: microcores and KiB."""


class StoredContainer(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One container, as schema 2 stores it."""

    cpu: WindowPart | None = None
    memory: WindowPart | None = None
    peaks: dict[str, tuple[int, float]] = {}
    kills: dict[str, int] = {}
    oom: tuple[int, float, int, int] | None = None
    """The fields of the container's `OomRecord`, or None if it has none."""

    pods: dict[Resource, dict[str, PodPart]] = {}
    """Resource → pod → average usage, for workloads with several pods (see `PodAverageIndex`). Earlier versions neither
    wrote nor read this field."""

    def window_part(self, resource: str) -> WindowPart | None:
        """Returns the days of one resource, `cpu` or `memory`."""
        return self.cpu if resource == "cpu" else self.memory


Workloads = dict[str, dict[str, StoredContainer]]


class _Text(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A text of schema 2, before its workloads are decoded."""

    schema: int
    checksum: str = ""
    count: int = 1
    widths: dict[str, int] = {}
    until: dict[str, int] = {}
    day: int | None = None
    workloads: bytes = b""


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """The decoded content of one ConfigMap, of either schema."""

    count: int = 1
    """The number of shards when this shard was written."""
    widths: dict[str, int] = {}
    """Namespace → the number of shards over which it is spread."""
    until: dict[str, int] = {}
    """Namespace → the time up to which its history was imported."""
    day: int | None = None
    """The day whose usage the shard holds. None: the shard holds everything that is not stored in the shard of a single
    day."""
    workloads: Workloads = {}


def workload_key(container: ContainerKey) -> str:
    """Returns the workload of a container in the form that shards use: NAMESPACE/KIND/NAME."""
    return f"{container.namespace}/{container.kind}/{container.workload}"


def encode(history: LiveHistory, containers: Iterable[ContainerKey], layout: ShardLayout) -> str:
    """Returns the text to store for these containers: everything except the days that have a text of their own. Its
    field `until` has only namespaces with a container among them."""
    containers = list(containers)
    namespaces = {container.namespace for container in containers}
    return _with_checksum(
        _Text(
            schema=CURRENT_SCHEMA,
            count=layout.count,
            widths={name: width for name, width in layout.widths.items() if name in namespaces},
            until={name: second for name, second in history.imported_until.items() if name in namespaces},
            workloads=_compress_workloads(
                _by_workload((container, _changing_part(history, container)) for container in containers)
            ),
        )
    )


def encode_day(history: LiveHistory, containers: Iterable[ContainerKey], day: int) -> str:
    """Returns the text to store for one day: the usage of these containers on that day."""
    parts = (
        (
            container,
            StoredContainer(
                _stored_window(history, container, "cpu", (day,)), _stored_window(history, container, "memory", (day,))
            ),
        )
        for container in containers
    )
    return _with_checksum(_Text(schema=CURRENT_SCHEMA, day=day, workloads=_compress_workloads(_by_workload(parts))))


def unstored_days(history: LiveHistory, containers: Iterable[ContainerKey]) -> dict[int, list[ContainerKey]]:
    """Returns day → the containers, among these, whose values of that day are not in a stored text of the day yet,
    sorted by day."""
    containers_by_day: dict[int, list[ContainerKey]] = {}
    for container in containers:
        windows = [
            resource_window
            for resource in RESOURCES
            if (resource_window := history.windows.get((container, resource))) is not None
        ]
        for day in {day for window in windows for day in window.unstored_days()}:
            containers_by_day.setdefault(day, []).append(container)
    return dict(sorted(containers_by_day.items()))


def mark_day_stored(history: LiveHistory, containers: Iterable[ContainerKey], day: int) -> None:
    """Records that this day of these containers is stored in a text of its own."""
    for container in containers:
        for resource in RESOURCES:
            window = history.windows.get((container, resource))
            if window is not None:
                window.mark_stored(day)


def decode(where: str, text: str) -> Shard | Unreadable:
    """Returns the content of a stored text. Returns Unreadable, and uses nothing of the text, if it was changed, is
    incomplete, or has an unknown schema."""
    try:
        schema = msgspec.json.decode(text, type=_Schema).schema
        if schema not in READABLE_SCHEMAS:
            return Unreadable(
                where,
                f"the checkpoint has the schema version {schema}, but this version of Trimtab reads the "
                f"versions 1 and {CURRENT_SCHEMA}",
            )
        shard = _decode_v1_shard(text) if schema == 1 else _decode_v2(text)
        _check_days(shard.workloads)
    # A text comes from a ConfigMap that anyone with the right to write it can change: every error that a decoder can
    # raise on arbitrary input is caught.
    except (msgspec.DecodeError, UnicodeError, RecursionError, DamagedHistogram, BytesRefused, binascii.Error) as error:
        return Unreadable(where, str(error))
    return shard


class _Schema(msgspec.Struct, frozen=True):
    schema: int


def _decode_v2(text: str) -> Shard:
    """Returns the content of a text of schema 2. Raises DamagedHistogram, BytesRefused and msgspec.DecodeError."""
    stored = decode_json(text, _Text)
    if stored.checksum != compute_checksum(stored):
        raise DamagedHistogram("the checksum of the checkpoint does not match, so its text was changed or cut short")
    workloads = decode_msgpack(unpack(stored.workloads), Workloads)
    return Shard(count=stored.count, widths=stored.widths, until=stored.until, day=stored.day, workloads=workloads)


def _decode_v1_shard(text: str) -> Shard:
    stored, unpacker = decode_v1(text), Unpacker()
    workloads = {
        name: {
            container: _upgrade_container(stored_container, unpacker)
            for container, stored_container in containers.items()
        }
        for name, containers in stored.workloads.items()
    }
    widths = {} if stored.widths is msgspec.UNSET else stored.widths
    return Shard(count=stored.count, widths=widths, until=stored.until, workloads=workloads)


def _upgrade_container(one: StoredContainerV1, unpacker: Unpacker) -> StoredContainer:
    windows = (decode_window_v1(one.cpu, unpacker), decode_window_v1(one.memory, unpacker))
    cpu, memory = (_window_part(w, w.histograms_by_day().keys()) if w is not None else None for w in windows)
    return StoredContainer(cpu, memory, one.peaks, one.kills, one.oom)


def _check_days(workloads: Workloads) -> None:
    """Checks the packed days of all containers. Raises DamagedHistogram if a day is damaged or has no hours, and
    BytesRefused if restoring the days could take too much memory."""
    memory = 0
    for containers in workloads.values():
        for container in containers.values():
            for part in (container.cpu, container.memory):
                if part is None:
                    continue
                days = sum(1 for _ in iterate_days(part.days))
                if days != len(part.hours):
                    raise DamagedHistogram("the number of days differs from the number of lists of hours")
                memory += days * DAY_MEMORY
                if memory > MAX_DECODED_BYTES:
                    raise BytesRefused("the checkpoint has more days than fit into the memory for one checkpoint")


def _changing_part(history: LiveHistory, container: ContainerKey) -> StoredContainer:
    windows = {r: w for r in RESOURCES if (w := history.windows.get((container, r))) is not None}
    cpu, memory = (
        _stored_window(history, container, r, windows[r].unstored_days()) if r in windows else None for r in RESOURCES
    )
    peaks = history.open_peaks.get(container)
    running = dict(peaks.running) if peaks is not None else {}
    kills = {pod: history.last_kills[container, pod] for pod in running if (container, pod) in history.last_kills}
    record = history.oom_records.get(container)
    oom = (record.at, record.used, record.count, record.last) if record is not None else None
    averages_by_resource: dict[Resource, dict[str, PodPart]] = {}
    for resource, unit in POD_UNIT.items():
        averages = history.pod_averages.to_checkpoint((container, resource))
        if averages:
            averages_by_resource[resource] = {
                name: (last, count, round(mean / unit)) for name, (last, count, mean) in averages.items()
            }
    return StoredContainer(cpu, memory, running, kills, oom, averages_by_resource)


def _stored_window(
    history: LiveHistory, container: ContainerKey, resource: str, days: Collection[int]
) -> WindowPart | None:
    window = history.windows.get((container, resource))
    return _window_part(window, days) if window is not None and days else None


def _window_part(window: DailyHistograms, days: Collection[int]) -> WindowPart | None:
    """Returns these days of a window, or None if they have no values. The times of the first and the last value are
    limited to these days, because other days are stored in other texts."""
    histograms = sorted(window.histograms_of_days(days).items())
    if not histograms or not window.last:
        return None
    first, last = histograms[0][0] * DAY, histograms[-1][0] * DAY + DAY - 1
    return WindowPart(
        max(window.first, first),
        min(window.last, last),
        tuple(window.hours_of(day) for day, _ in histograms),
        # Only the newest day can still grow, so only it stays in single buckets.
        b"".join(pack_day(day, counts, over=day != window.newest) for day, counts in histograms),
    )


def _by_workload(containers: Iterable[tuple[ContainerKey, StoredContainer]]) -> Workloads:
    """Returns workload → its containers in stored form. Containers with nothing to store are left out."""
    workloads: Workloads = {}
    for container, stored in containers:
        if stored != StoredContainer():
            workloads.setdefault(workload_key(container), {})[container.name] = stored
    return workloads


def _compress_workloads(workloads: Workloads) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(workloads, order="sorted"))


def _with_checksum(text: _Text) -> str:
    return msgspec.json.encode(msgspec.structs.replace(text, checksum=compute_checksum(text)), order="sorted").decode()
