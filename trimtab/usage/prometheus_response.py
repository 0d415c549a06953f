"""What did Prometheus answer? Millions of points, of which never more than one series is held as objects.

An answer is cut where series end, and each is read from its own bytes. Nearly every series is regular: a point at each
step, every value a number. Of those the text is made one list of numbers, which is decoded at once. Whatever is not
exactly so (a gap, NaN, +Inf, other spacing) goes to the decoder that names every field, with the same result.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from math import isfinite

import msgspec

from trimtab.usage.cluster_label import LABELS, Origin
from trimtab.usage.errors import GarbledSource
from trimtab.usage.series import SKEW, Series


class SeriesLabels(msgspec.Struct, frozen=True, gc=False, rename={"hidden_tenant_id": "__tenant_id__"}):
    namespace: str = ""
    pod: str = ""
    container: str = ""
    owner_kind: str = ""
    owner_name: str = ""
    replicaset: str = ""
    job_name: str = ""
    cluster: str = ""
    cluster_name: str = ""
    k8s_cluster_name: str = ""
    prometheus: str = ""
    tenant: str = ""
    tenant_id: str = ""
    hidden_tenant_id: str = ""

    @property
    def origin(self) -> Origin:
        """The labels that tell clusters apart, those that are there."""
        values = (self.cluster, self.cluster_name, self.k8s_cluster_name, self.prometheus, self.tenant,
                  self.tenant_id, self.hidden_tenant_id)  # fmt: skip
        return tuple(pair for pair in zip(LABELS, values, strict=True) if pair[1]) if any(values) else ()


class _Point(msgspec.Struct, frozen=True, array_like=True, gc=False):
    at: float
    value: float


class _One(msgspec.Struct, frozen=True, gc=False):
    metric: SeriesLabels
    values: list[_Point] = []


class _Data(msgspec.Struct, frozen=True):
    result: list[msgspec.Raw] = []


class _Answer(msgspec.Struct, frozen=True):
    status: str = ""
    error: str = ""
    data: _Data = _Data()


_ANSWER = msgspec.json.Decoder(_Answer)
_METRIC = msgspec.json.Decoder(SeriesLabels)
_NUMBERS = msgspec.json.Decoder(list[float])
_ONE = msgspec.json.Decoder(_One, strict=False)
"""Numbers come as text."""

_BEGIN, _END, _VALUES = b'{"metric":', b'"]]}', b',"values":[['
_LABELS = 4096
"""Bytes within which the points of a series begin; one with more labels is read the slower way."""
_PLAIN = bytes(ord(" ") if chr(at) in '[]"' else at if chr(at) in "0123456789.,+-eE" else ord("!") for at in range(256))
"""Brackets and quotes are nothing between numbers; all else that no number holds is a mistake."""

Found = tuple[SeriesLabels, Sequence[int], Sequence[float], int]
"""Labels, moments, values, and how many points were left out since they are no number."""


def parsed(body: bytes, resource: str, now: int | None = None, asked: int | None = None) -> Iterator[Series]:
    """The series of one answer, one at a time; `asked`: its first moment. Raises GarbledSource."""
    try:
        for metric, times, values, left_out in _read(body):
            if now is not None and times and times[-1] > now + SKEW:
                until = bisect_right(times, now + SKEW)
                times, values = times[:until], values[:until]
            yield Series(
                namespace=metric.namespace, pod=metric.pod, container=metric.container, resource=resource,
                times=times, values=values, asked=asked, left_out=left_out, origin=metric.origin,
            )  # fmt: skip
    except msgspec.DecodeError as error:
        raise GarbledSource(f"an answer of {len(body)} bytes: {error}") from None


def _read(body: bytes) -> Iterator[Found]:
    for piece in _cut(body):
        found = _regular(piece)
        if found is not None:
            yield found
        else:
            yield from map(exactly, _several(piece))


def _several(piece: memoryview | msgspec.Raw) -> list[msgspec.Raw]:
    """A series without points does not end as others do, and stands in one piece with the next."""
    return _ANSWER.decode(b'{"data":{"result":[%b]}}' % bytes(piece)).data.result


def metrics(body: bytes) -> Iterator[SeriesLabels]:
    """The labels of each series. Raises GarbledSource and msgspec.DecodeError."""
    for raw in _answer(body).data.result:
        yield _ONE.decode(_spelled(raw)).metric


def _answer(body: bytes) -> _Answer:
    answer = _ANSWER.decode(body)
    if answer.status not in ("", "success"):
        raise GarbledSource(f"the answer says {answer.status}: {answer.error}")
    return answer


def _cut(body: bytes) -> Iterator[memoryview | msgspec.Raw]:
    """The text of each series. What stands before and behind them is decoded with the last; where cuts are not all
    between two series, the decoder finds them."""
    first, ends = body.find(_BEGIN), list(_ends(body))[:-1]
    whole = all(body[end : end + 1] == b"," and body.startswith(_BEGIN, end + 1) for end in ends)
    if first < 0 or not ends or not whole:
        yield from _answer(body).data.result
        return
    starts = [first, *(end + 1 for end in ends)]
    last = _answer(body[:first] + body[starts[-1] :]).data.result
    view = memoryview(body)
    for start, end in pairwise(starts):
        yield view[start : end - 1]
    yield from last


def _ends(body: bytes) -> Iterator[int]:
    """Behind each series. One letter is looked for, which takes a tenth of the time of four."""
    at = body.find(b"}")
    while at >= 0:
        if body.startswith(_END, at - 3):
            yield at + 1
        at = body.find(b"}", at + 1)


def _regular(raw: memoryview | msgspec.Raw) -> Found | None:
    """A series with a point at each step and nothing but numbers; None where that is not so.

    Moments that stand where moments do, each a step after the other, leave no place for a number too many or too few.
    """
    text = memoryview(raw)
    begin = bytes(text[:_LABELS]).find(_VALUES)
    if begin < 0 or not (text[: len(_BEGIN)] == _BEGIN and text[-len(_END) :] == _END):
        return None
    try:
        metric = _METRIC.decode(text[len(_BEGIN) : begin])
        flat = _NUMBERS.decode(_list(text[begin + len(_VALUES) - 1 : -2]))
    except msgspec.DecodeError:
        return None
    times, values = _grid(flat), flat[1::2]
    return None if times is None or not isfinite(sum(values)) else (metric, times, values, 0)


def _list(points: memoryview) -> bytearray:
    """The numbers of points as one list, written over what stood around them: a bytearray is translated in half the
    time of bytes, and needs no copy for its ends."""
    text = bytearray(points).translate(_PLAIN)
    text[0], text[-1] = ord("["), ord("]")
    return text


def _grid(flat: Sequence[float]) -> range | None:
    """The moments, if they are whole seconds, each a step after the other, and one to each value."""
    if len(flat) < 4 or len(flat) % 2:
        return None
    first, step = flat[0], flat[2] - flat[0]
    if not (first.is_integer() and step.is_integer() and step > 0):
        return None
    moments, pack, held = _moments(int(first), int(step), len(flat) // 2)
    return moments if pack(*flat[::2]) == held else None


@lru_cache(maxsize=64)
def _moments(first: int, step: int, count: int) -> tuple[range, Callable[..., bytes], bytes]:
    """Most series of an answer have the same. Bytes are compared in half the time of numbers."""
    found = range(first, first + step * count, step)
    pack = struct.Struct(f"{count}d").pack
    return found, pack, pack(*found)


def _spelled(raw: bytes | msgspec.Raw) -> bytes:
    """Prometheus writes +Inf and -Inf, which the decoder knows by other names."""
    text = bytes(raw)
    return text.replace(b'"+Inf"', b'"inf"').replace(b'"-Inf"', b'"-inf"') if b'Inf"' in text else text


def exactly(raw: bytes | msgspec.Raw) -> Found:
    """Any series. Prometheus sends each moment once and in order; a ratio of nothing comes as NaN, and is left out.
    Raises msgspec.DecodeError."""
    one = _ONE.decode(_spelled(raw))
    values = [point.value for point in one.values]
    if isfinite(sum(values)):
        return one.metric, [int(point.at) for point in one.values], values, 0
    kept = [point for point in one.values if isfinite(point.value)]
    left_out = len(values) - len(kept)
    return one.metric, [int(point.at) for point in kept], [point.value for point in kept], left_out
