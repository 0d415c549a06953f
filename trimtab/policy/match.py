"""Does this policy mean this pod, and which of its containers?"""

import hashlib
from collections.abc import Callable
from functools import lru_cache

from trimtab.cluster.reason import Reason
from trimtab.cluster.selectors import glob, labels_match
from trimtab.policy import hpa, reasons, vpa
from trimtab.policy.containers import is_image, means
from trimtab.policy.document import Conditions, Containers, Namespaces, PodPolicy
from trimtab.policy.subject import MIRROR, OPT_OUT, Place, Subject


def always_left_alone(subject: Subject) -> Reason | None:
    """Pods no policy is ever asked about, with the reason; None: policies decide."""
    if subject.terms.paused:
        return reasons.PAUSED("all changes are paused")
    if MIRROR in subject.annotations:
        return reasons.MIRROR_POD("the pod mirrors a static pod of the kubelet")
    if subject.namespace in subject.terms.system_namespaces or subject.namespace == subject.terms.own_namespace:
        return reasons.SYSTEM_NAMESPACE(f"pods of {subject.namespace} are never changed")
    if _says(subject.annotations.get(OPT_OUT)) or _says(subject.labels.get(OPT_OUT)):
        return reasons.OPTED_OUT(f"the pod says {OPT_OUT}")
    if _says((subject.namespace_labels or {}).get(OPT_OUT)):
        return reasons.OPTED_OUT(f"namespace {subject.namespace} says {OPT_OUT}")
    return None


def _says(value: str | None) -> bool:
    """Anything but an explicit no: whoever writes the key means it."""
    return value is not None and value.lower() not in ("false", "no", "off", "0")


def matches(policy: PodPolicy, subject: Subject) -> bool:
    """All conditions of `match`, and none of its exclusions."""
    match = policy.spec.match
    return policy.spec.enabled and _meets(match, subject) and not any(_meets(e, subject) for e in match.exclude)


def in_rollout(policy: PodPolicy, subject: Subject) -> bool:
    """Is this owner among the policy's share? The same owners every time; a larger share keeps them."""
    if policy.spec.rollout >= 100:
        return True
    drawn = hashlib.blake2b(f"{policy.name}\n{subject.identity}".encode(), digest_size=8).digest()
    return int.from_bytes(drawn, "big") % 100 < policy.spec.rollout


def meant(policy: PodPolicy, subject: Subject) -> tuple[Place, ...]:
    """The containers that requests and limits of this policy mean."""
    containers = policy.spec.match.containers
    if containers is None:
        return subject.places
    return tuple(place for place in subject.places if _is(containers, place))


def _meets(conditions: Conditions, subject: Subject) -> bool:
    """Cheapest questions first."""
    spec = subject.pod.spec
    return (
        (conditions.namespaces is None or _in_namespaces(conditions.namespaces, subject))
        and (not conditions.pod_labels or _labelled(conditions.pod_labels, subject))
        and (conditions.pod_selector is None or labels_match(conditions.pod_selector.selector, subject.labels))
        and (not conditions.runtime_classes or _named(conditions.runtime_classes, spec.runtime_class_name))
        and (not conditions.priority_classes or _named(conditions.priority_classes, spec.priority_class_name))
        and (not conditions.owners or _owned(conditions.owners, subject))
        and (conditions.containers is None or any(_is(conditions.containers, place) for place in subject.places))
        and (conditions.vpa is None or (conditions.vpa == "managed") == (vpa.of(subject) is not None))
        and (conditions.hpa is None or (conditions.hpa == "utilization") == hpa.by_utilization(subject))
    )


def _in_namespaces(namespaces: Namespaces, subject: Subject) -> bool:
    name = subject.namespace
    if namespaces.include and not glob(namespaces.include)(name):
        return False
    if namespaces.exclude and glob(namespaces.exclude)(name):
        return False
    if namespaces.selector is None:
        return True
    labels = subject.namespace_labels
    # A namespace that is not known yet is not guessed at: the policy waits for it.
    return labels is not None and labels_match(namespaces.selector.selector, labels)


def _labelled(wanted: dict[str, str], subject: Subject) -> bool:
    return all(key in subject.labels and glob((pattern,))(subject.labels[key]) for key, pattern in wanted.items())


def _named(patterns: tuple[str, ...], name: object) -> bool:
    """`none` stands for a pod that names nothing; no other pattern does."""
    if not isinstance(name, str) or not name:
        return "none" in patterns
    return glob(patterns)(name)


def _owned(wanted: tuple[str, ...], subject: Subject) -> bool:
    test = _owners(wanted)
    return any(test(name) for name in subject.owner_names)


@lru_cache(maxsize=1024)
def _owners(wanted: tuple[str, ...]) -> Callable[[str], bool]:
    return glob(tuple(pattern if "/" in pattern else f"{pattern}/*" for pattern in wanted))


def _is(containers: Containers, place: Place) -> bool:
    if containers.not_images and is_image(containers.not_images, place.container.image):
        return False
    return means(containers.names, containers.roles, containers.images, place)


def names_daemons(policy: PodPolicy) -> bool:
    """Does the policy speak of DaemonSets by name? Only then may it move their pods."""
    return any(owner.split("/")[0] == "DaemonSet" for owner in policy.spec.match.owners)
