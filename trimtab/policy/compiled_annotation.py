"""Reads the annotations `compiled.trimtab.dev/POLICY`, in which compiled policies record what they wrote on a pod.

The API server evaluates compiled policies before it calls webhooks. So the webhook finds their values on the pod, and
must not mistake them for the author's: a request that a compiled policy wrote is treated like one that a LimitRange
filled in.

    compiled.trimtab.dev/burstable-by-default: containers[app].requests.cpu=250m containers[app].limits.cpu=removed

Any client may write such an annotation, but it gains nothing: an author who claims that a policy wrote the request
could just as well have left the request out. An entry counts only while the field still has the value that the entry
names.
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
"""The largest number of entries that are read from all annotations of a pod together. (The API server allows 256 KiB of
annotations.)"""


def compiled_values(pod_context: PodContext) -> Mapping[str, tuple[str, str]]:
    """Returns field → (policy, value) of everything that compiled policies say they wrote."""
    return pod_context.compute_once(_read_annotations)


def is_compiled_request(pod_context: PodContext, container: ContainerRef, resource: str) -> bool:
    """Returns whether a compiled policy wrote this request: an annotation names the field, and the field still has the
    value that the annotation names."""
    written = compiled_values(pod_context).get(f"{container.name}.requests.{resource}")
    current = requests_of(container.container.resources).get(resource)
    if written is None or current is None or not quantity.is_quantity(written[1]):
        return False
    return quantity.is_same_quantity(written[1], current)


def find_compiled_policy(pod_context: PodContext, field: str) -> str:
    """Returns the compiled policy that wrote this field according to the annotations, or an empty string if there is
    none."""
    written = compiled_values(pod_context).get(field)
    return "" if written is None else written[0]


def _read_annotations(pod_context: PodContext) -> Mapping[str, tuple[str, str]]:
    policies_by_field: dict[str, tuple[str, str]] = {}
    for key, text in pod_context.annotations.items():
        if key.startswith(COMPILED_PREFIX):
            for entry in text.split(" ")[: _MAX_ENTRIES - len(policies_by_field)]:
                field, _, value = entry.rpartition("=")
                policies_by_field[field or value] = (key.removeprefix(COMPILED_PREFIX), value if field else "")
    return policies_by_field
