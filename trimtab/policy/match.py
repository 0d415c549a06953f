"""Does this policy mean this pod, and which of its containers?"""

import hashlib
from collections.abc import Callable, Iterator

from trimtab.cluster.reason import Reason
from trimtab.cluster.selectors import glob, labels_match
from trimtab.policy import hpa, reasons, vpa
from trimtab.policy.containers import is_image, means
from trimtab.policy.document import Conditions, Containers, Match, Namespaces, PodPolicy, Selector
from trimtab.policy.subject import MIRROR, OPT_OUT, Place, Subject

Test = Callable[[Subject], bool]
"""A question about a pod, its patterns read once for many pods."""


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


def test(match: Match) -> Test:
    """All conditions of `match`, and none of its exclusions."""
    wanted, unwanted = tuple(_asked(match)), tuple(tuple(_asked(excluded)) for excluded in match.exclude)

    def meets(subject: Subject) -> bool:
        # Loops, not generators: this runs for every policy and pod.
        for asks in wanted:
            if not asks(subject):
                return False
        for excluded in unwanted:
            for asks in excluded:
                if not asks(subject):
                    break
            else:
                return False
        return True

    return meets


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


def _asked(given: Conditions) -> Iterator[Test]:
    """Cheapest questions first; what is not given is not asked."""
    if given.namespaces is not None:
        yield _in_namespaces(given.namespaces)
    if given.pod_labels:
        yield _labelled(given.pod_labels)
    if given.pod_selector is not None:
        yield _selected(given.pod_selector)
    if given.runtime_classes:
        of_class = _named(given.runtime_classes)
        yield lambda subject: of_class(subject.pod.spec.runtime_class_name)
    if given.priority_classes:
        of_priority = _named(given.priority_classes)
        yield lambda subject: of_priority(subject.pod.spec.priority_class_name)
    if given.owners:
        yield _owned(given.owners)
    yield from _found_out(given)


def _found_out(given: Conditions) -> Iterator[Test]:
    """What has to be looked up, or looked for in every container."""
    if given.containers is not None:
        containers = given.containers
        yield lambda subject: any(_is(containers, place) for place in subject.places)
    if given.vpa is not None:
        managed = given.vpa == "managed"
        yield lambda subject: managed == (subject.once(vpa.of) is not None)
    if given.hpa is not None:
        by_utilization = given.hpa == "utilization"
        yield lambda subject: by_utilization == subject.once(hpa.by_utilization)


def _in_namespaces(namespaces: Namespaces) -> Test:
    by_name = name_test(namespaces)
    selector = None if namespaces.selector is None else namespaces.selector.selector

    def is_in(subject: Subject) -> bool:
        if not by_name(subject.namespace):
            return False
        if selector is None:
            return True
        labels = subject.namespace_labels
        # A namespace that is not known yet is not guessed at: the policy waits for it.
        return labels is not None and labels_match(selector, labels)

    return is_in


def name_test(namespaces: Namespaces) -> Callable[[str], bool]:
    """May a namespace of this name be meant?"""
    included, excluded = glob(namespaces.include or ("*",)), glob(namespaces.exclude)
    return lambda name: included(name) and not excluded(name)


def _labelled(wanted: dict[str, str]) -> Test:
    patterns = [(key, glob((pattern,))) for key, pattern in wanted.items()]

    def is_labelled(subject: Subject) -> bool:
        labels = subject.labels
        return all(key in labels and pattern(labels[key]) for key, pattern in patterns)

    return is_labelled


def _selected(wanted: Selector) -> Test:
    selector = wanted.selector
    return lambda subject: labels_match(selector, subject.labels)


def _named(patterns: tuple[str, ...]) -> Callable[[object], bool]:
    """`none` stands for a pod that names nothing; no other pattern does."""
    nothing, named = "none" in patterns, glob(patterns)
    return lambda name: named(name) if isinstance(name, str) and name else nothing


def _owned(wanted: tuple[str, ...]) -> Test:
    is_wanted = glob(tuple(pattern if "/" in pattern else f"{pattern}/*" for pattern in wanted))
    return lambda subject: any(map(is_wanted, subject.owner_names))


def _is(containers: Containers, place: Place) -> bool:
    if containers.not_images and is_image(containers.not_images, place.container.image):
        return False
    return means(containers.names, containers.roles, containers.images, place)


def names_daemons(policy: PodPolicy) -> bool:
    """Does the policy speak of DaemonSets by name? Only then may it move their pods."""
    return any(owner.split("/")[0] == "DaemonSet" for owner in policy.spec.match.owners)
