"""What compiled policies wrote on a pod: the annotations `compiled.trimtab.dev/POLICY`.

The API server evaluates compiled policies before it calls webhooks. So the webhook finds their values on the pod, and
must not take them for the author's: a request of theirs is like one that a LimitRange filled in.

    compiled.trimtab.dev/burstable-by-default: containers[app].requests.cpu=250m containers[app].limits.cpu=removed

Any client may write such an annotation, and gains nothing: who claims that a policy gave the request could have left
the request out. An entry counts only while the field still has the value that it names.
"""

from collections.abc import Mapping

from trimtab.cluster import quantity
from trimtab.cluster.resources import requests_of
from trimtab.policy.pod_context import ContainerRef, PodContext

COMPILED_PREFIX = "compiled.trimtab.dev/"
"""The beginning of the annotations' keys; the policy's name follows."""
POLICY_LABEL = "trimtab.dev/policy"
"""The label of compiled policies and their bindings: the name of the PodPolicy."""
_MAX_ENTRIES = 2000
"""Of all annotations of a pod: the API server lets a pod have 256 KiB of them."""


def compiled_values(subject: PodContext) -> Mapping[str, tuple[str, str]]:
    """Returns field → (policy, value) of everything that compiled policies say they wrote."""
    return subject.compute_once(_read_annotations)


def is_compiled_request(subject: PodContext, place: ContainerRef, resource: str) -> bool:
    """Returns whether a compiled policy gave this request: it says so, and the value is still the one that it names."""
    written = compiled_values(subject).get(f"{place.name}.requests.{resource}")
    current = requests_of(place.container.resources).get(resource)
    if written is None or current is None or not quantity.is_quantity(written[1]):
        return False
    return quantity.is_same_quantity(written[1], current)


def find_compiled_policy(subject: PodContext, field: str) -> str:
    """Returns the policy that says it wrote this field, or an empty string where none does."""
    written = compiled_values(subject).get(field)
    return "" if written is None else written[0]


def _read_annotations(subject: PodContext) -> Mapping[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for key, text in subject.annotations.items():
        if key.startswith(COMPILED_PREFIX):
            for entry in text.split(" ")[: _MAX_ENTRIES - len(found)]:
                field, _, value = entry.rpartition("=")
                found[field or value] = (key.removeprefix(COMPILED_PREFIX), value if field else "")
    return found
