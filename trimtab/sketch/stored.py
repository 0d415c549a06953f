"""A part of a diary as text, for a checkpoint, and back.

{"schema": 1, "checksum": "<sha256 of the rest>", "count": 4, "widths": {"shop": 2}, "until": {"shop": 1767571200},
  "workloads":
  {"NAMESPACE/KIND/NAME": {"CONTAINER": {"cpu": "<base64>", "memory": "<base64>",
                                         "peaks": {"POD": [interval, bytes]}, "kills": {"POD": second}}}}}
"""

import base64
import binascii
import hashlib
from collections.abc import Iterable

import msgspec

from trimtab.cluster.reason import Unreadable
from trimtab.cluster.shards import Layout
from trimtab.sketch.book import RESOURCES, Container
from trimtab.sketch.diary import Diary
from trimtab.sketch.packed import Damaged
from trimtab.sketch.peaks import Peaks
from trimtab.sketch.window import Window

SCHEMA = 1


class Stored(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One container."""

    cpu: str = ""
    memory: str = ""
    peaks: dict[str, tuple[int, float]] = {}
    kills: dict[str, int] = {}


Workloads = dict[str, dict[str, Stored]]


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """What one ConfigMap holds."""

    schema: int
    checksum: str = ""
    count: int = 1
    """Of how many shards this was one."""
    widths: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    """Namespace → over how many shards it is spread; not here where none is."""
    until: dict[str, int] = {}
    workloads: Workloads = {}


def workload(container: Container) -> str:
    """As shards call it."""
    return f"{container.namespace}/{container.kind}/{container.workload}"


def encode(diary: Diary, containers: Iterable[Container], layout: Layout) -> str:
    """What the diary holds of these containers. `until` of a namespace that has none among them is left out."""
    found: Workloads = {}
    for container in containers:
        found.setdefault(workload(container), {})[container.name] = _stored(diary, container)
    namespaces = {name.partition("/")[0] for name in found}
    until = {name: at for name, at in diary.until.items() if name in namespaces}
    widths = {name: width for name, width in layout.widths.items() if name in namespaces} or msgspec.UNSET
    bare = Shard(schema=SCHEMA, count=layout.count, widths=widths, until=until, workloads=found)
    return _written(msgspec.structs.replace(bare, checksum=_checksum(bare))).decode()


def decode(where: str, text: str) -> Shard | Unreadable:
    """Unreadable where it was changed, cut short or written by another version: nothing of it is taken then."""
    try:
        found = msgspec.json.decode(text, type=Shard)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return Unreadable(where, str(error))
    if found.schema != SCHEMA:
        return Unreadable(where, f"schema {found.schema}; this version reads schema {SCHEMA}")
    if found.checksum != _checksum(found):
        return Unreadable(where, "the checksum does not match: it was changed or cut short")
    try:
        load(Diary(), found)
    except (Damaged, binascii.Error) as error:
        return Unreadable(where, str(error))
    return found


def load(diary: Diary, shard: Shard) -> None:
    """All of a shard that `decode` found sound, beside what is there."""
    for name, containers in shard.workloads.items():
        namespace, _, rest = name.partition("/")
        kind, _, own = rest.partition("/")
        for container, stored in containers.items():
            _load(diary, Container(namespace, kind, own, container), stored)
    for namespace, at in shard.until.items():
        diary.until[namespace] = min(at, diary.until.get(namespace, at))


def _load(diary: Diary, container: Container, stored: Stored) -> None:
    for resource in RESOURCES:
        text: str = getattr(stored, resource)
        if text:
            diary.put(container, resource, Window.load(base64.b64decode(text, validate=True)))
    if stored.peaks:
        running = diary.peaks.setdefault(container, Peaks()).running
        running.update({pod: (number, value) for pod, (number, value) in stored.peaks.items()})
    diary.kills.update({(container, pod): at for pod, at in stored.kills.items()})


def _stored(diary: Diary, container: Container) -> Stored:
    held = {resource: diary.windows.get((container, resource)) for resource in RESOURCES}
    texts = {r: base64.b64encode(w.dump()).decode() for r, w in held.items() if w is not None and w.last}
    peaks = diary.peaks.get(container)
    running = dict(peaks.running) if peaks is not None else {}
    kills = {pod: diary.kills[container, pod] for pod in running if (container, pod) in diary.kills}
    return Stored(peaks=running, kills=kills, **texts)


def _checksum(shard: Shard) -> str:
    return hashlib.sha256(_written(msgspec.structs.replace(shard, checksum=""))).hexdigest()


def _written(shard: Shard) -> bytes:
    return msgspec.json.encode(shard, order="sorted")
