"""What does a VPA say that a container should ask for?

Its target is a P90 with a margin, of days that fade: a number to start from where no usage was seen, and no percentile
of ours. A VPA in mode `Off` says it to people only.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from trimtab.cluster import quantity
from trimtab.cluster.api.scaling import VerticalPodAutoscaler
from trimtab.cluster.quantity import NotAQuantity

RESOURCES = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class Advice:
    """Of one resource of one container."""

    vpa: str
    target: int
    """The scheduler's number: millicores, or bytes; at least 1."""


def given(vpa: VerticalPodAutoscaler) -> Iterator[tuple[str, str, Advice]]:
    """(container, resource, advice) of all that its status recommends; what is no quantity is left out."""
    for one in vpa.status.recommendation.container_recommendations:
        for resource in RESOURCES:
            try:
                target = quantity.of(resource, one.target.get(resource, 0))
            except NotAQuantity:
                continue
            if target > 0:
                yield one.container_name, resource, Advice(vpa.metadata.name, target)
