"""Says what the values of a metric are, by its name.

Names of metrics follow rules: `_total` ends the name of a counter, the unit stands before it, and a recording rule is
named `level:metric:operations` (https://prometheus.io/docs/practices/naming and …/rules). Only the usage of containers
has a quantity here: requests, limits, throttling, disks, networks and processes have none, whatever their unit is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from pathlib import PurePath


class Quantity(StrEnum):
    """What the values of a series of usage are."""

    CORES = "cores"
    CPU_SECONDS = "cpu-seconds"
    """A counter of seconds of cpu time; its rate is in cores."""
    BYTES = "bytes"

    @property
    def resource(self) -> str:
        """cpu or memory."""
        return "memory" if self is Quantity.BYTES else "cpu"


_CPU_UNITS = {"": 1.0, "core": 1.0, "cores": 1.0, "millicores": 1e-3, "nanocores": 1e-9}
"""The unit of a gauge of cpu usage → how many cores it is."""
_MEMORY_UNITS = {"": 1.0, "bytes": 1.0, "kilobytes": 1e3, "megabytes": 1e6, "kibibytes": 1024.0, "mebibytes": 1048576.0}
"""The unit of a gauge of memory → how many bytes it is."""
_CPU_WORDS = (("cpu", "usage"), ("cpu", "time"))
"""What the names of metrics of cpu usage say: cAdvisor's and the kubelet's container_cpu_usage_seconds_total,
OpenTelemetry's container.cpu.usage and container.cpu.time (https://opentelemetry.io, semantic conventions)."""
_MEMORY_WORDS = (("memory", "working", "set"),)
"""What the names of metrics of the working set say: cAdvisor's, the kubelet's and OpenTelemetry's are the same."""
_SUBJECTS = (
    ("container",),
    ("k8s", "container"),
    ("kube", "container"),
    ("kube", "pod", "container"),
    ("pod", "container"),
    ("namespace", "pod", "container"),
)
"""Whose usage it is, as the first words of a metric's name say."""


_OPERATIONS = re.compile(r"(?:(?:sum|avg|max|min|i?rate)(?:_?\d+[smhd])?(?:_|$))*", re.ASCII)
"""Matches the operations of a recording rule that leave usage what it is. With any other, such as `ratio`, `count` or
`increase`, the values are something else."""

_NAMES_OPERATION = re.compile(
    r"(?:^|_)(?:i?rate|i?delta|increase|deriv|ratio|count|percent|quantile|stddev)(?:_?\d+[smhd])?(?:_|$)", re.ASCII
)
"""Matches a part of a name that is no label but an operation, perhaps among others."""


_WORDS = {
    "cpu": Quantity.CORES,
    "core": Quantity.CORES,
    "cores": Quantity.CORES,
    "cpu-seconds": Quantity.CPU_SECONDS,
    "cpu_seconds": Quantity.CPU_SECONDS,
    "cpu_seconds_total": Quantity.CPU_SECONDS,
    "memory": Quantity.BYTES,
    "byte": Quantity.BYTES,
    "bytes": Quantity.BYTES,
}
"""The words of a column or of the label `resource` that say what a value is."""


def quantity_of_word(word: str) -> tuple[Quantity, float] | None:
    """Returns what a value is, as a column or a label says it in a word such as memory, or by the name of a metric."""
    quantity = _WORDS.get(word.strip().lower())
    return (quantity, 1.0) if quantity is not None else quantity_of_metric(word.strip())


@lru_cache(maxsize=4096)
def quantity_of_metric(name: str) -> tuple[Quantity, float] | None:
    """Returns what the values of this metric are, and the factor to cores, seconds or bytes; None if the metric is not
    the cpu usage or the working set of containers, or its name does not say so."""
    parts = name.split(":")
    for position, part in enumerate(parts):
        # Operations follow the metric by the rules for names; some write them before it, where others name labels.
        before = [one for one in parts[:position] if one and _OPERATIONS.fullmatch(one)]
        if any(_NAMES_OPERATION.search(one) for one in parts[:position] if one not in before):
            return None
        operations = "_".join([*before, *parts[position + 1 :]])
        quantity = _quantity_of_part(part, is_rated="rate" in operations)
        if quantity is not None:
            return quantity if _OPERATIONS.fullmatch(operations) else None
    return None


def _quantity_of_part(part: str, is_rated: bool) -> tuple[Quantity, float] | None:
    words = part.lower().split("_")
    is_counter = words[-1] == "total"
    words = words[: len(words) - is_counter]
    unit = words[-1] if words[-1] in ("seconds", *_CPU_UNITS, *_MEMORY_UNITS) else ""
    words = words[: len(words) - bool(unit)]
    subject = next((len(subject) for subject in _SUBJECTS if tuple(words[: len(subject)]) == subject), 0)
    measure = tuple(words[subject:])
    if subject and measure in _MEMORY_WORDS and unit in _MEMORY_UNITS and not is_counter and not is_rated:
        return Quantity.BYTES, _MEMORY_UNITS[unit]
    if not subject or measure not in _CPU_WORDS:
        return None
    if unit == "seconds" or measure[-1] == "time":
        # A rule that takes a rate often drops `_total`, as the rules for names advise. Seconds per second are cores.
        return (Quantity.CORES if is_rated else Quantity.CPU_SECONDS), 1.0
    return (Quantity.CORES, _CPU_UNITS[unit]) if unit in _CPU_UNITS and not is_counter else None


def is_counter_name(name: str) -> bool:
    """Returns whether a metric of this name is a counter, by the rule for names."""
    return name.endswith("_total")


@dataclass(frozen=True, slots=True)
class StatedQuantities:
    """What the user says of the series whose name does not tell their quantity (`--quantity`)."""

    everywhere: Quantity | None = None
    by_file: Mapping[str, Quantity] = field(default_factory=dict)
    """File, as the user names it or without its folder → its quantity."""

    def of_file(self, file: str) -> Quantity | None:
        """Returns the quantity of the series in this file, or None if the user does not say it."""
        return self.by_file.get(file) or self.by_file.get(PurePath(file).name) or self.everywhere


NOTHING_STATED = StatedQuantities()


def parse_stated_quantities(texts: Iterable[str]) -> StatedQuantities:
    """Returns what `--quantity` says; each text is QUANTITY or FILE=QUANTITY. Raises ValueError with what was
    expected."""
    everywhere, by_file = None, dict[str, Quantity]()
    for text in texts:
        file, _, word = text.rpartition("=")
        if word not in list(Quantity):
            raise ValueError(f"one of {', '.join(Quantity)}, or FILE=QUANTITY")
        if file:
            by_file[file] = Quantity(word)
        else:
            everywhere = Quantity(word)
    return StatedQuantities(everywhere, by_file)
