"""The stored pod as it was submitted, as far as that can be known; and pods that are decided alike.

What the API server fills in before it asks a webhook (defaults, LimitRange, priority, the class's overhead) a webhook
sees, too: it stays. What comes after (name, node, times, status) goes. What another webhook or an in-place resize
changed later cannot be told from what was submitted, and stays.
"""

import hashlib
import re
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

import msgspec

from trimtab.admission.running.incident import Incident, incidents
from trimtab.cluster.api.meta import UNSET, Labels, Metadata, Requirement, UnsetType, change, get
from trimtab.cluster.api.pod import Affinity, NodeAffinity, Pod, PodSpec, Volume
from trimtab.cluster.moment import seconds
from trimtab.policy import marker
from trimtab.policy.marker import Marker

NOT_HELD = "(not held)"
"""Stands for the value of an annotation that nobody here reads: that it is there counts, what it says does not."""
_GENERATED = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{5}")
"""What the API server puts behind a generateName (apimachinery, util/rand)."""
_FINISHED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Alike:
    """What some pods share, and all that a decision on them looks at. Two are the same only if they are one object."""

    namespace: str
    pod: Pod
    """As it was submitted, as far as that can be known."""
    marker: Marker | None
    """What we did to them when they were admitted; None where nothing, or nothing that can be read."""


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """One pod of the cluster, thinly: some 300 bytes beside what it shares."""

    alike: Alike
    name: str
    uid: str
    created: float | None
    """Seconds since 1970; None where it does not say."""
    running: bool
    """Not finished, and not about to be deleted."""
    incidents: tuple[Incident, ...] = ()
    """What befell it, as far as its status tells; nearly always empty."""

    @property
    def namespace(self) -> str:
        return self.alike.namespace


@dataclass(slots=True)
class Reader:
    """API pods → held ones; equal parts are the very same. Not for two threads."""

    _known: WeakValueDictionary[bytes, Alike] = field(default_factory=WeakValueDictionary)
    """What no pod is like any more is forgotten by itself."""

    def __call__(self, pod: Pod) -> Held:
        meta = pod.metadata
        return Held(
            alike=self._alike(pod),
            name=meta.name,
            uid=meta.uid,
            created=seconds(meta.creation_timestamp),
            running=pod.status.phase not in _FINISHED and not meta.deletion_timestamp,
            incidents=incidents(pod.status, seconds(meta.creation_timestamp)),
        )

    def _alike(self, pod: Pod) -> Alike:
        namespace = pod.metadata.namespace or "default"
        bare = submitted(pod)
        key = hashlib.blake2b(_encode((namespace, bare)), digest_size=16).digest()
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Alike(namespace, bare, marker.read(bare, namespace))
        return found


_encode = msgspec.msgpack.Encoder().encode


def submitted(pod: Pod) -> Pod:
    """Without what came after admission, and without what no decision asks for."""
    meta = pod.metadata
    bare = Pod(
        metadata=Metadata(
            name=meta.name,
            generate_name=meta.generate_name,
            namespace=meta.namespace,
            labels=meta.labels,
            annotations=_annotations(meta.annotations),
            owner_references=meta.owner_references,
        ),
        spec=_anywhere(meta, _spec(pod.spec)),
    )
    return _as_sent(bare, meta.namespace or "default")


def _as_sent(pod: Pod, namespace: str) -> Pod:
    """Under the name it was sent with: none, where the API server made one of `generateName`.

    Our marker tells for sure. Without one the look of the name does. A controller's pods are told by their controller,
    whatever their names: they are given none, and their marker is made to fit, so that they are alike.
    """
    meta = pod.metadata
    unnamed = change(pod, metadata=change(meta, name=""))
    if meta.controller is not None:
        found = marker.read(pod, namespace) or marker.read(unnamed, namespace)
        return unnamed if found is None else marker.write(unnamed, namespace, found, ())
    generated = meta.generate_name and meta.name.startswith(meta.generate_name)
    if not generated or marker.read(pod, namespace) is not None:
        return pod
    looks_drawn = _GENERATED.fullmatch(meta.name.removeprefix(meta.generate_name))
    return unnamed if looks_drawn or marker.read(unnamed, namespace) is not None else pod


def _spec(spec: PodSpec) -> PodSpec:
    """A pod sent with its node cannot be told from one that the scheduler placed; nearly all are the latter."""
    return change(spec, node_name="", volumes=tuple(v for v in spec.volumes if _says_something(v)))


def _anywhere(meta: Metadata, spec: PodSpec) -> PodSpec:
    """A DaemonSet names each pod's node in its affinity; apart from that its pods are alike."""
    owner = meta.controller
    node = get(get(spec.affinity, _NO_AFFINITY).node_affinity, _NO_NODE)
    required = get(node.required, None)
    if owner is None or owner.kind != "DaemonSet" or required is None:
        return spec
    terms = tuple(change(term, match_fields=_ANY_NODE) if get(term.match_fields, ()) else term
                  for term in required.node_selector_terms)  # fmt: skip
    node = change(node, required=change(required, node_selector_terms=terms))
    return change(spec, affinity=change(get(spec.affinity, _NO_AFFINITY), node_affinity=node))


_NO_AFFINITY, _NO_NODE = Affinity(), NodeAffinity()
_ANY_NODE = (Requirement(key="metadata.name", operator="Exists"),)


def _says_something(volume: Volume) -> bool:
    """The token's volume has a name of chance, and says nothing to any policy."""
    return any(getattr(volume, name) is not UNSET for name in Volume.__struct_fields__ if name != "name")


def _annotations(found: Labels | UnsetType) -> Labels | UnsetType:
    """Values only of those that decide something; of the others (addresses, checksums) that they are there."""
    held = {name: text if _is_read(name) else NOT_HELD for name, text in sorted(get(found, {}).items())}
    return held or UNSET


_READ = ("cluster-autoscaler.kubernetes.io/", "trimtab.dev/")


def _is_read(name: str) -> bool:
    return name.startswith(_READ)
