"""Records which cluster facts a decision reads, and tells whether newer facts would give the same answers.

`track_dependencies` returns facts that record every question asked of them. A cache keeps these `FactDependencies` with
a response and calls `check_freshness` when newer facts arrive: the response may be reused exactly where every question
would be answered as before. No other code has to know which facts an action, a match or a check reads.
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import fields
from enum import Enum, auto
from typing import Any

import msgspec

from trimtab.cluster.api.core import ResourceQuota
from trimtab.cluster.node_shapes import NodeShapes
from trimtab.cluster.owner import Owner
from trimtab.cluster.recommendation import Recommendations
from trimtab.cluster.replicas import Replicas
from trimtab.policy.cluster_facts import ClusterFacts


class Freshness(Enum):
    """How newer facts affect a decision that was made with older ones."""

    SAME = auto()
    """The decision would read exactly the same."""
    USED = auto()
    """Only the used part of a quota differs, or the number of pods of an owner: decisions do not read these, the check
    of the outcome does."""
    NODES = auto()
    """Node shapes or DaemonSets differ, which only that check reads; a quota's use may differ, too."""
    OTHER = auto()


class _SpecialKey(Enum):
    ABSENT = auto()
    WHOLE = auto()
    """The key of a question about a mapping as a whole."""
    ANY = auto()
    """The key of the question whether a mapping is empty."""


Question = tuple[str, Hashable]
"""A field of `ClusterFacts`, and the key that was read."""

# `problems` are reported and never decide anything; `nodes` are compared on their own.
_UNTRACKED_FIELDS = frozenset({"problems", "nodes"})


class FactDependencies(msgspec.Struct, eq=False, gc=False):
    """Every question asked of the facts, with its answer. It grows while a decision is made."""

    plain: tuple[Any, ...]
    """Fields of the facts that are no mappings; all of them count as read."""
    nodes: NodeShapes
    """The node shapes. Every check of an outcome reads them; they are replaced by those that the last check used."""
    answers: dict[Question, Any]
    """What was read by key. The facts themselves are not referenced: that would keep every version of them in memory.
    """

    @property
    def reads_quotas(self) -> bool:
        """True if a quota was read, so that `Freshness.USED` is possible."""
        return any(name == "quotas" and isinstance(value, tuple) for (name, _), value in self.answers.items())

    def check_freshness(self, facts: ClusterFacts) -> Freshness:
        """Returns whether these facts would give the same answers to all questions."""
        if not all(map(_is_unchanged, self.plain, _plain_values(facts))):
            return Freshness.OTHER
        freshness = Freshness.SAME if facts.nodes is self.nodes else Freshness.NODES
        for (name, key), earlier in self.answers.items():
            current = _answer_question(facts, name, key)
            if _is_unchanged(earlier, current):
                continue
            # Numbers of existing pods and the used part of quotas change with every pod that starts.
            if name != _COUNTS_FIELD and not (name == "quotas" and _differs_in_use_only(earlier, current)):
                return Freshness.OTHER
            freshness = freshness if freshness is Freshness.NODES else Freshness.USED
        return freshness

    def read_again(self, facts: ClusterFacts, renamed: "dict[Hashable, Hashable]") -> "dict[Question, Any] | None":
        """Returns the answers of these facts to all questions about another owner, or None if any of them differs.

        renamed: key of a question about the owner → the key of the same question about the other one. Questions for
        the controller of an owner are left out: the caller compares the owners themselves.
        """
        if facts.nodes is not self.nodes or not all(map(_is_unchanged, self.plain, _plain_values(facts))):
            return None
        answers: dict[Question, Any] = {}
        for (name, earlier_key), earlier in self.answers.items():
            if name == _OWNERS_FIELD:
                continue
            key = renamed.get(earlier_key, earlier_key)
            current = _answer_question(facts, name, key)
            if not (_is_unchanged(earlier, current) or _differs_in_revision_only(earlier, current)):
                return None
            answers[name, key] = current
        return answers


def track_dependencies(facts: ClusterFacts) -> tuple[ClusterFacts, FactDependencies]:
    """Returns the same facts, and a record of what is read of them from now on."""
    answers: dict[Question, Any] = {}
    usage = facts.recommendations
    recorded = ClusterFacts.__new__(ClusterFacts)
    # Past `__init__` of a frozen dataclass, which costs several times as much for twenty fields.
    values = recorded.__dict__
    values.update(facts.__dict__)
    for name in _KEYED_FIELDS:
        values[name] = _RecordingMapping(name, values[name], answers)
    values[_USAGE_FIELD] = Recommendations(_RecordingMapping(_USAGE_FIELD, usage.workloads, answers), usage.missing)
    return recorded, FactDependencies(_plain_values(facts), facts.nodes, answers)


def _plain_values(facts: ClusterFacts) -> tuple[Any, ...]:
    return tuple([getattr(facts, name) for name in _PLAIN_FIELDS])


class _RecordingMapping(Mapping[Any, Any]):
    """A mapping that records the keys that are read, with their values."""

    __slots__ = ("_answers", "_inner", "_name")

    def __init__(self, name: str, inner: Mapping[Any, Any], answers: dict[Question, Any]) -> None:
        self._name, self._inner, self._answers = name, inner, answers

    def get(self, key: Any, default: Any = None) -> Any:
        # A key that is absent is recorded, too: the decision changes when the object appears.
        value = self._answers[self._name, key] = self._inner.get(key, _SpecialKey.ABSENT)
        return default if value is _SpecialKey.ABSENT else value

    def __getitem__(self, key: Any) -> Any:
        value = self.get(key, _SpecialKey.ABSENT)
        if value is _SpecialKey.ABSENT:
            raise KeyError(key)
        return value

    def __contains__(self, key: object) -> bool:
        return self.get(key, _SpecialKey.ABSENT) is not _SpecialKey.ABSENT

    def __bool__(self) -> bool:
        is_filled = self._answers[self._name, _SpecialKey.ANY] = bool(self._inner)
        return is_filled

    def __iter__(self) -> Iterator[Any]:
        self._answers[self._name, _SpecialKey.WHOLE] = self._inner
        return iter(self._inner)

    def __len__(self) -> int:
        self._answers[self._name, _SpecialKey.WHOLE] = self._inner
        return len(self._inner)


_USAGE_FIELD, _OWNERS_FIELD = "recommendations", "owners"
# How many pods an owner has changes with every pod, and is read together with a quota's use.
_COUNTS_FIELD = "updated"
_EMPTY_FACTS = ClusterFacts()
_KEYED_FIELDS = tuple(f.name for f in fields(ClusterFacts) if isinstance(getattr(_EMPTY_FACTS, f.name), Mapping))
_PLAIN_FIELDS = tuple(
    f.name for f in fields(ClusterFacts) if f.name not in {*_KEYED_FIELDS, *_UNTRACKED_FIELDS, _USAGE_FIELD}
)


def _answer_question(facts: ClusterFacts, name: str, key: Hashable) -> Any:
    mapping: Mapping[Any, Any] = facts.recommendations.workloads if name == _USAGE_FIELD else getattr(facts, name)
    if key is _SpecialKey.WHOLE:
        return mapping
    return bool(mapping) if key is _SpecialKey.ANY else mapping.get(key, _SpecialKey.ABSENT)


_PLAIN_TYPES = (bool, int, str, frozenset, Owner, type(None))


def _is_unchanged(earlier: Any, current: Any) -> bool:
    """Returns whether a value is unchanged: the same object, or an equal value of a plain type.

    Facts keep objects that did not change, so identity is the rule. Equality is not enough for the other types: two
    equal mappings may still be encoded in another order.
    """
    return earlier is current or (
        type(earlier) is type(current) and isinstance(earlier, _PLAIN_TYPES) and earlier == current
    )


def _differs_in_use_only(earlier: Any, current: Any) -> bool:
    if earlier is _SpecialKey.ABSENT or current is _SpecialKey.ABSENT or not isinstance(earlier, tuple):
        return False
    return list(map(_without_use, earlier)) == list(map(_without_use, current))


def _without_use(quota: ResourceQuota) -> tuple[Any, ...]:
    """Returns all that decisions read of a quota, that is, everything but `status.used`."""
    return quota.metadata.name, quota.spec, quota.status.hard


def _differs_in_revision_only(earlier: Any, current: Any) -> bool:
    """Returns whether both are the same numbers of pods of two revisions. Only the check of a quota reads the
    revision."""
    return (
        isinstance(earlier, Replicas)
        and isinstance(current, Replicas)
        and msgspec.structs.replace(earlier, revision="") == msgspec.structs.replace(current, revision="")
    )
