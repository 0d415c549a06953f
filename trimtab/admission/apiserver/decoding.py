"""Can the API server read this pod?

Every quantity is parsed on the way in. Text that is none is a 400; in what a webhook made of the pod it is a 500 that
`failurePolicy: Ignore` does not cover.
"""

from collections.abc import Iterator

from trimtab.admission.apiserver.outcome import Refused
from trimtab.cluster import quantity
from trimtab.cluster.api.meta import ResourceList, get
from trimtab.cluster.api.pod import Pod, PodSpec
from trimtab.cluster.resources import limits_of, requests_of
from trimtab.policy.facts import Facts

PLUGIN = "decoding"
_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
UNREADABLE = Refused(400, PLUGIN, f'Pod in version "v1" cannot be handled as a Pod: {_WRONG}')
UNREADABLE_RESULT = Refused(500, PLUGIN, f"Internal error occurred: {_WRONG}")
"""What a webhook made of the pod cannot be read."""


def decode(pod: Pod, facts: Facts, namespace: str) -> Pod | Refused:
    """The pod as it came, if all its quantities are some."""
    return pod if readable(pod) else UNREADABLE


def readable(pod: Pod) -> bool:
    """Is every quantity one?"""
    return all(quantity.is_quantity(value) for part in _lists(pod.spec) for value in part.values())


def _lists(spec: PodSpec) -> Iterator[ResourceList]:
    for part in (*(c.resources for c in spec.containers + spec.init_containers), spec.resources):
        yield requests_of(part)
        yield limits_of(part)
    yield get(spec.overhead, {})
