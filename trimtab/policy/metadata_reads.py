"""Records which values of a pod's metadata a decision reads.

The pods of two rollouts, or of two Jobs of one CronJob, differ in labels, annotations and names that decide nothing. A
decision that is made with a record holds for every pod whose metadata gives the same answers to everything that was
read (`admission.template_cache`). No other code has to know which labels a policy, an action or a check reads.

The keys of labels and annotations are not recorded: such a pod has the same keys.
"""

from collections.abc import Callable, Iterator, Mapping

import msgspec

OwnerTest = Callable[[str], bool]
"""Tests the name of one owner, such as `ReplicaSet/web-5d4f`."""


class MetadataReads(msgspec.Struct, frozen=True, eq=False):
    """What was read of one pod's metadata. It grows while a decision is made."""

    labels: set[str] = msgspec.field(default_factory=set)
    """Keys of the labels whose values were read."""
    annotations: set[str] = msgspec.field(default_factory=set)
    """Keys of the annotations whose values were read."""
    owner_tests: dict[OwnerTest, bool] = msgspec.field(default_factory=dict)
    """Test of a policy → its result for the nearest owner."""


class RecordedValues(Mapping[str, str]):
    """Labels or annotations that record whose values are read."""

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
