"""Records what a decision reads: of the cluster facts, of the pod's metadata, and of environments and command lines.

`track_dependencies` returns facts that record everything that is read from them. A cache stores this record
(`FactDependencies`) with a response, and calls `check_freshness` when newer facts arrive: the response may be used
again if everything that was read is still the same. So the cache need not know which facts an action, a match or a
check reads.

The pods of two rollouts, or of two Jobs of one CronJob, differ in labels, annotations and names that no policy reads. A
decision with `MetadataReads` holds for every pod whose metadata have the same values wherever the decision read them
(`admission.template_cache`). So the cache need not know which labels a policy, an action or a check reads. Which keys
of labels and annotations exist is not recorded: pods that share a decision have the same keys.
"""

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import fields
from enum import Enum, auto
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from trimtab.cluster.api.core import ResourceQuota
from trimtab.cluster.node_shapes import NodeShapes
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.recommendation import Recommendations
from trimtab.cluster.replicas import Replicas
from trimtab.cluster.runtime_signs import RuntimeSign
from trimtab.policy.cluster_facts import ClusterFacts


class Freshness(Enum):
    """How newer facts affect a decision that was made with older facts."""

    SAME = auto()
    """Everything that the decision has read is the same."""
    USED = auto()
    """Only a quota's usage or an owner's number of pods differs. Only the check of the result depends on these."""
    NODES = auto()
    """Node shapes or DaemonSets differ, perhaps a quota's usage too. Only the check of the result depends on these."""
    OTHER = auto()


class _SpecialKey(Enum):
    ABSENT = auto()
    WHOLE = auto()
    """The key that records that a whole mapping was read."""
    ANY = auto()
    """The key that records that only the emptiness of a mapping was read."""


_ABSENT = _SpecialKey.ABSENT


Answers = dict[str, dict[Hashable, Any]]
"""Field of `ClusterFacts` → key that was read from it → the value."""

# `problems` are reported and never decide anything; `nodes` are compared on their own.
_UNTRACKED_FIELDS = frozenset({"problems", "nodes"})


class FactDependencies(msgspec.Struct, eq=False, gc=False):
    """A record of everything that was read from the facts, with the values. It grows while a decision is made."""

    plain: tuple[Any, ...]
    """The values of those fields of the facts that are not mappings. All of these fields count as read."""
    nodes: NodeShapes
    """The node shapes with which the result was last checked. Every check reads them."""
    answers: Answers
    """What was read. The facts themselves are not referenced, because every version of them would then stay in
    memory."""

    @property
    def reads_quotas(self) -> bool:
        """Whether a quota was read, so that the result of `check_freshness` can be `Freshness.USED`."""
        return any(isinstance(value, tuple) for value in self.answers.get("quotas", {}).values())

    @property
    def keys(self) -> Iterator[tuple[str, Hashable]]:
        """Yields (field, key) of everything that was read."""
        for name, answers in self.answers.items():
            for key in answers:
                yield name, key

    def merge(self, others: Answers) -> Answers:
        """Returns these answers and others. Of two to the same question, this record's counts."""
        names = self.answers.keys() | others.keys()
        return {name: {**others.get(name, {}), **self.answers.get(name, {})} for name in names}

    def check_freshness(self, facts: ClusterFacts) -> Freshness:
        """Returns how newer facts differ from the values that were read."""
        if not all(map(_is_unchanged, self.plain, _read_plain_fields(facts))):
            return Freshness.OTHER
        freshness = Freshness.SAME if facts.nodes is self.nodes else Freshness.NODES
        for name, answers in self.answers.items():
            mapping = _mapping_of(facts, name)
            for key, earlier in answers.items():
                current = _answer_question(mapping, key)
                if _is_unchanged(earlier, current):
                    continue
                # Numbers of existing pods and the used part of quotas change with every pod that starts.
                if name != _COUNTS_FIELD and not (name == "quotas" and _differs_in_use_only(earlier, current)):
                    return Freshness.OTHER
                freshness = freshness if freshness is Freshness.NODES else Freshness.USED
        return freshness

    def split_by_owner(self, keys: Collection[Hashable]) -> "tuple[FactDependencies, FactDependencies]":
        """Returns what was read by one of these keys, which are those of an owner; and everything else that was read.

        The controllers of owners are left out, because who shares a decision compares the owners themselves.
        """
        own: Answers = {}
        common: Answers = {}
        for name, answers in self.answers.items():
            if name == _OWNERS_FIELD:
                continue
            own[name], common[name] = {}, {}
            for key, answer in answers.items():
                (own if key in keys else common)[name][key] = answer
        own = {name: answers for name, answers in own.items() if answers}
        return FactDependencies(self.plain, self.nodes, own), FactDependencies(self.plain, self.nodes, common)

    def has_same_answers(self, facts: ClusterFacts) -> bool:
        """Returns whether a decision would read the same from these facts."""
        if facts.nodes is not self.nodes or not all(map(_is_unchanged, self.plain, _read_plain_fields(facts))):
            return False
        return all(
            _is_alike(earlier, _answer_question(_mapping_of(facts, name), key))
            for name, answers in self.answers.items()
            for key, earlier in answers.items()
        )

    def read_for_other(self, facts: ClusterFacts, renamed: "Mapping[Hashable, Hashable]") -> Answers | None:
        """Returns what a decision about another owner reads from these facts. None if any value differs from the one
        that was read for the first owner.

        renamed: key of the first owner → the corresponding key of the other one.
        """
        others: Answers = {}
        for name, answers in self.answers.items():
            mapping = _mapping_of(facts, name)
            own: dict[Hashable, Any] = {}
            for earlier_key, earlier in answers.items():
                key = renamed.get(earlier_key, earlier_key)
                current = own[key] = _answer_question(mapping, key)
                if not _is_alike(earlier, current):
                    return None
            others[name] = own
        return others


def track_dependencies(facts: ClusterFacts) -> tuple[ClusterFacts, FactDependencies]:
    """Returns facts with the same content, and the record of everything that is read from them from now on."""
    answers: Answers = {}
    plain = _read_plain_fields(facts)
    recorded = _RecordedFacts.__new__(_RecordedFacts)
    # Past `__init__` of a frozen dataclass, which costs several times as much for twenty fields.
    values = recorded.__dict__
    values.update(zip(_PLAIN_FIELDS, plain, strict=True))
    values["nodes"], values["problems"] = facts.nodes, facts.problems
    values["_source"], values["_answers"] = facts, answers
    return recorded, FactDependencies(plain, facts.nodes, answers)


class _RecordedFacts(ClusterFacts):
    """Facts that record what is read from them. Each mapping is made when it is first asked for: a decision that is
    shared reads one of the fifteen."""

    def __getattr__(self, name: str) -> Any:
        # Called only for attributes that are not there yet.
        values = self.__dict__
        if name not in _RECORDED_FIELDS or "_source" not in values:
            raise AttributeError(name)
        inner, answers = getattr(values["_source"], name), values["_answers"].setdefault(name, {})
        if name == _USAGE_FIELD:
            value: object = Recommendations(_RecordingMapping(inner.workloads, answers), inner.missing)
        else:
            value = _RecordingMapping(inner, answers)
        values[name] = value
        return value


def _plain_values(facts: ClusterFacts) -> tuple[Any, ...]:
    return _read_plain_fields(facts)


class _RecordingMapping(Mapping[Any, Any]):
    """A mapping that records each key that is read from it, with the value."""

    __slots__ = ("_answers", "_inner")

    def __init__(self, inner: Mapping[Any, Any], answers: dict[Hashable, Any]) -> None:
        self._inner, self._answers = inner, answers

    def get(self, key: Any, default: Any = None) -> Any:
        # A key that is absent is recorded, too: the decision changes when the object appears.
        value = self._answers[key] = self._inner.get(key, _ABSENT)
        return default if value is _ABSENT else value

    def __getitem__(self, key: Any) -> Any:
        value = self.get(key, _ABSENT)
        if value is _ABSENT:
            raise KeyError(key)
        return value

    def __contains__(self, key: object) -> bool:
        return self.get(key, _ABSENT) is not _ABSENT

    def __bool__(self) -> bool:
        is_filled = self._answers[_SpecialKey.ANY] = bool(self._inner)
        return is_filled

    def __iter__(self) -> Iterator[Any]:
        self._answers[_SpecialKey.WHOLE] = self._inner
        return iter(self._inner)

    def __len__(self) -> int:
        self._answers[_SpecialKey.WHOLE] = self._inner
        return len(self._inner)


_USAGE_FIELD, _OWNERS_FIELD = "recommendations", "owners"
# How many pods an owner has changes with every pod, and is read together with a quota's use.
_COUNTS_FIELD = "updated"
_EMPTY_FACTS = ClusterFacts()
_KEYED_FIELDS = tuple(f.name for f in fields(ClusterFacts) if isinstance(getattr(_EMPTY_FACTS, f.name), Mapping))
_PLAIN_FIELDS = tuple(
    f.name for f in fields(ClusterFacts) if f.name not in {*_KEYED_FIELDS, *_UNTRACKED_FIELDS, _USAGE_FIELD}
)
_RECORDED_FIELDS = frozenset({*_KEYED_FIELDS, _USAGE_FIELD})
_read_plain_fields: Callable[[ClusterFacts], tuple[Any, ...]] = attrgetter(*_PLAIN_FIELDS)


def _mapping_of(facts: ClusterFacts, name: str) -> Mapping[Any, Any]:
    mapping: Mapping[Any, Any] = facts.recommendations.workloads if name == _USAGE_FIELD else getattr(facts, name)
    return mapping


def _answer_question(mapping: Mapping[Any, Any], key: Hashable) -> Any:
    if key is _SpecialKey.WHOLE:
        return mapping
    return bool(mapping) if key is _SpecialKey.ANY else mapping.get(key, _ABSENT)


_PLAIN_TYPES = (bool, int, str, frozenset, OwnerKey, type(None))


def _is_unchanged(earlier: Any, current: Any) -> bool:
    """Returns whether a value is unchanged: it is the same object, or an equal value of a plain type.

    Facts keep the objects that did not change, so identity is enough in most cases. For other types equality is not
    enough: two equal mappings may be encoded in different orders.
    """
    return earlier is current or (
        type(earlier) is type(current) and isinstance(earlier, _PLAIN_TYPES) and earlier == current
    )


def _differs_in_use_only(earlier: Any, current: Any) -> bool:
    if earlier is _ABSENT or current is _ABSENT or not isinstance(earlier, tuple):
        return False
    return list(map(_without_use, earlier)) == list(map(_without_use, current))


def _without_use(quota: ResourceQuota) -> tuple[Any, ...]:
    """Returns what decisions read of a quota: everything but `status.used`."""
    return quota.metadata.name, quota.spec, quota.status.hard


def _is_alike(earlier: Any, current: Any) -> bool:
    """Returns whether a decision that read the one value holds for the other one, too: they are the same, or pod counts
    that differ only in the revision (the pod template), which only the check of a quota reads."""
    return _is_unchanged(earlier, current) or (
        isinstance(earlier, Replicas)
        and isinstance(current, Replicas)
        and msgspec.structs.replace(earlier, revision="") == msgspec.structs.replace(current, revision="")
    )


OwnerTest = Callable[[str], bool]
"""A function that tests the name of one owner, such as `ReplicaSet/web-5d4f`."""


class ContainerSigns(NamedTuple):
    """What the environment variables, the command line and the image of a container show, without their text."""

    name: str
    limit_fields: tuple[tuple[str, str], ...]
    """(container, field) of the limits that a variable refers to."""
    runtimes: tuple[RuntimeSign, ...]


class MetadataReads(msgspec.Struct, frozen=True, eq=False):
    """The values that were read from one pod's metadata. The record grows while a decision is made."""

    labels: set[str] = msgspec.field(default_factory=set)
    """The keys of the labels whose values were read."""
    annotations: set[str] = msgspec.field(default_factory=set)
    """The keys of the annotations whose values were read."""
    owner_tests: dict[OwnerTest, bool] = msgspec.field(default_factory=dict)
    """Test by a policy → its result for the pod's nearest owner."""
    rollouts: dict[tuple[str, int], bool] = msgspec.field(default_factory=dict)
    """(policy, percentage of its rollout) → whether the pod's topmost owner is included."""
    container_signs: set[tuple[ContainerSigns, ...]] = msgspec.field(default_factory=set)
    """The signs of all containers, if they were read. They are the only part of the pod's environment variables and
    command lines on which a decision may depend."""


class RecordedValues(Mapping[str, str]):
    """A mapping of labels or annotations that records the keys whose values are read."""

    __slots__ = ("_reads", "_values")

    def __init__(self, values: Mapping[str, str], reads: set[str]) -> None:
        self._values, self._reads = values, reads

    def get(self, key: str, default: "str | None" = None) -> "str | None":  # type: ignore[override]
        self._reads.add(key)
        return self._values.get(key, default)

    def __getitem__(self, key: str) -> str:
        self._reads.add(key)
        return self._values[key]

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
