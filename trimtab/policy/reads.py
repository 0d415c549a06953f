"""Which facts did a decision rest on, and are they still the same?

`watched` hands out facts that note each question asked of them. Whoever keeps an answer keeps the `Reads` beside it
and asks `verdict` when newer facts have come: the answer may be given again exactly where every question would be
answered as it was. Nothing has to know which facts an action, a match or a check reads.
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import fields, replace
from enum import Enum, auto
from typing import Any

import msgspec

from trimtab.cluster.api.rules import ResourceQuota
from trimtab.cluster.owner import Owner
from trimtab.policy.facts import Facts


class Since(Enum):
    """What newer facts mean for a decision made with older ones."""

    SAME = auto()
    """It would read the very same."""
    USED = auto()
    """All that differs is how much of a quota is used: no decision reads that, the check before sending does."""
    OTHER = auto()


class _Mark(Enum):
    ABSENT = auto()
    WHOLE = auto()
    """The key of a question about a mapping as a whole."""
    ANY = auto()
    """The key of the question whether there is anything in it."""


_Question = tuple[str, Hashable]
"""A field of Facts, and the key asked for."""

_UNREAD = frozenset({"problems"})
"""Told to people, never decided by."""


class Reads(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Every question asked of the facts with its answer; grows while a decision is made."""

    plain: tuple[Any, ...]
    """Fields of the facts that are not asked by key; all taken as read."""
    seen: dict[_Question, Any]
    """What was asked by key. The facts themselves are not held: they would be kept alive, version by version."""

    @property
    def quotas(self) -> bool:
        """Was a quota read, so that `Since.USED` may come?"""
        return any(name == "quotas" and isinstance(value, tuple) for (name, _), value in self.seen.items())

    def since(self, facts: Facts) -> Since:
        """Would all that was read be read again from these facts?"""
        if not all(map(_alike, self.plain, _plain(facts))):
            return Since.OTHER
        found = Since.SAME
        for (name, key), before in self.seen.items():
            now = _asked(facts, name, key)
            if _alike(before, now):
                continue
            if name != "quotas" or not _same_but_used(before, now):
                return Since.OTHER
            found = Since.USED
        return found


def watched(facts: Facts) -> tuple[Facts, Reads]:
    """The same facts, and what is read of them from now on."""
    seen: dict[_Question, Any] = {}
    noted: dict[str, Any] = {name: _Noted(name, getattr(facts, name), seen) for name in _KEYED}
    noted[_USAGE] = replace(facts.recommendations, workloads=_Noted(_USAGE, facts.recommendations.workloads, seen))
    return replace(facts, **noted), Reads(_plain(facts), seen)


def _plain(facts: Facts) -> tuple[Any, ...]:
    return tuple([getattr(facts, name) for name in _PLAIN])


class _Noted(Mapping[Any, Any]):
    """A mapping that writes down what it is asked."""

    __slots__ = ("_inner", "_name", "_seen")

    def __init__(self, name: str, inner: Mapping[Any, Any], seen: dict[_Question, Any]) -> None:
        self._name, self._inner, self._seen = name, inner, seen

    def get(self, key: Any, default: Any = None) -> Any:
        found = self._seen[self._name, key] = self._inner.get(key, _Mark.ABSENT)
        return default if found is _Mark.ABSENT else found

    def __getitem__(self, key: Any) -> Any:
        found = self.get(key, _Mark.ABSENT)
        if found is _Mark.ABSENT:
            raise KeyError(key)
        return found

    def __contains__(self, key: object) -> bool:
        return self.get(key, _Mark.ABSENT) is not _Mark.ABSENT

    def __bool__(self) -> bool:
        found = self._seen[self._name, _Mark.ANY] = bool(self._inner)
        return found

    def __iter__(self) -> Iterator[Any]:
        self._seen[self._name, _Mark.WHOLE] = self._inner
        return iter(self._inner)

    def __len__(self) -> int:
        self._seen[self._name, _Mark.WHOLE] = self._inner
        return len(self._inner)


_USAGE = "recommendations"
_EMPTY = Facts()
_KEYED = tuple(f.name for f in fields(Facts) if isinstance(getattr(_EMPTY, f.name), Mapping))
_PLAIN = tuple(f.name for f in fields(Facts) if f.name not in {*_KEYED, *_UNREAD, _USAGE})


def _asked(facts: Facts, name: str, key: Hashable) -> Any:
    mapping: Mapping[Any, Any] = facts.recommendations.workloads if name == _USAGE else getattr(facts, name)
    if key is _Mark.WHOLE:
        return mapping
    return bool(mapping) if key is _Mark.ANY else mapping.get(key, _Mark.ABSENT)


_PLAIN_TYPES = (bool, int, str, frozenset, Owner, type(None))


def _alike(before: Any, now: Any) -> bool:
    """The same object, as everything is that did not change; or a plain value that says the same.

    Equal is not enough for the rest: two equal mappings may still be written out in another order.
    """
    return before is now or (type(before) is type(now) and isinstance(before, _PLAIN_TYPES) and before == now)


def _same_but_used(before: Any, now: Any) -> bool:
    if before is _Mark.ABSENT or now is _Mark.ABSENT or not isinstance(before, tuple):
        return False
    return list(map(_without_use, before)) == list(map(_without_use, now))


def _without_use(quota: ResourceQuota) -> tuple[Any, ...]:
    """All that is read of a quota but `status.used`."""
    return quota.metadata.name, quota.spec, quota.status.hard
