"""Records which values of a pod's metadata a decision reads, and what it reads of environments and command lines.

The pods of two rollouts, or of two Jobs of one CronJob, differ in labels, annotations and names that no policy reads. A
decision with such a record holds for every pod whose metadata have the same values wherever the decision read them
(`admission.template_cache`). So the cache need not know which labels a policy, an action or a check reads.

Which keys of labels and annotations exist is not recorded: pods that share a decision have the same keys.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from trimtab.cluster.runtime_signs import RuntimeSign

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
