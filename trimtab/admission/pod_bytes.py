"""Masks in a pod's bytes what no decision reads, so that pods that differ in nothing else are recognized as the same.

    the token volume   the ServiceAccount plugin names it `kube-api-access-` and five random characters before it calls
                       webhooks (plugin/pkg/admission/serviceaccount)
    the node           the DaemonSet controller pins each pod to its node by a required node affinity for the node's
                       name (`ReplaceDaemonSetPodNodeNameNodeAffinity`, pkg/controller/daemon/util). Of the node, a
                       decision reads only the shape, which belongs to the key of the pod

All pods that one ReplicaSet, DaemonSet or Job creates differ in nothing but these.
"""

import base64
import re
from typing import NamedTuple

import msgspec

from trimtab.admission.admission_result import AdmissionRecord
from trimtab.cluster.api.meta import UNSET, SelectorRequirement, change, value_or
from trimtab.cluster.api.pod import NodeSelectorTerm, Pod, Volume
from trimtab.cluster.node import HOSTNAME_LABEL
from trimtab.cluster.node_shapes import Key, Machine, NodeShape, shape_key
from trimtab.policy.cluster_facts import ClusterFacts, Derived
from trimtab.policy.decision_reads import FactDependencies

_TOKEN_VOLUME_NAME = re.compile(rb'"kube-api-access-[a-z0-9]{5}"')
_TOKEN_PREFIX = b'"kube-api-access-'
_TOKEN_NAME_LENGTH = len(_TOKEN_PREFIX) + 6
_INVALID_BYTE = b"\xff"
"""A byte that no JSON text contains, because it is not valid UTF-8."""
_TOKEN_PLACEHOLDER = _TOKEN_PREFIX + _INVALID_BYTE * 5 + b'"'
"""Replaces the name of the token volume. It has the same length, so that no bytes have to move."""
_PIN = b'"matchFields":[{"key":"metadata.name","operator":"In","values":["'
"""What is before the node's name, as the API server encodes it."""
_NODE_NAME = re.compile(rb'[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?(?="\]\})')
"""The name of a node (RFC 1123), with what the API server writes after it."""
_NODE_PLACEHOLDER = _INVALID_BYTE
_ANY_NODE = "/any node/"
"""Stands in the place of the node's name while the bytes are decoded. It is the name of no node."""


class PodBytes(NamedTuple):
    """A pod's bytes, and what is masked in them."""

    masked: bytes
    """The bytes with placeholders. Two different pods have different ones, unless they differ in nothing else than the
    masked names."""
    token_name: bytes = b""
    """The name of the token volume, in quotes; empty if there is none."""
    node_name: str = ""
    """The name of the node to which the pod may be pinned; empty if there is none."""


def mask_pod_bytes(raw: bytes) -> PodBytes | None:
    """Returns the pod's bytes with its masked names, or None if they are not a valid JSON text."""
    if _INVALID_BYTE in raw:
        return None
    position = raw.rfind(_TOKEN_PREFIX)
    token = raw[position : position + _TOKEN_NAME_LENGTH] if position >= 0 else b""
    if _TOKEN_VOLUME_NAME.fullmatch(token):
        masked = raw.replace(token, _TOKEN_PLACEHOLDER)
    else:
        masked, token = raw, b""
    # From the end: CPython's `find` takes eight times as long for these bytes.
    position = masked.rfind(_PIN)
    node = _NODE_NAME.match(masked, position + len(_PIN)) if position >= 0 else None
    if node is None:
        return PodBytes(masked, token)
    pinned = _PIN + node[0] + b'"'
    return PodBytes(masked.replace(pinned, _PIN + _NODE_PLACEHOLDER + b'"'), token, node[0].decode())


def with_any_node(raw: bytes, node_name: str) -> bytes:
    """Returns the pod's bytes with another name in each place where `mask_pod_bytes` masks the node's."""
    encoded = node_name.encode()
    return raw.replace(_PIN + encoded + b'"', _PIN + _ANY_NODE.encode() + b'"')


def pin_to_node(pod: Pod, node_name: str) -> Pod | None:
    """Returns the pod that was decoded from `with_any_node`, with its node's name. None if the name is masked elsewhere
    than in the pod's required node affinity, so that a decision might read it."""
    affinity = pod.spec.affinity
    if affinity is UNSET or affinity.node_affinity is UNSET or affinity.node_affinity.required is UNSET:
        return None
    required = affinity.node_affinity.required
    terms = tuple([_pin_term(term, node_name) for term in required.node_selector_terms])
    node_affinity = change(affinity.node_affinity, required=change(required, node_selector_terms=terms))
    pinned = change(pod, spec=change(pod.spec, affinity=change(affinity, node_affinity=node_affinity)))
    return None if _ANY_NODE.encode() in msgspec.json.encode(pinned) else pinned


def _pin_term(term: NodeSelectorTerm, node_name: str) -> NodeSelectorTerm:
    fields = value_or(term.match_fields, ())
    if _ANY_FIELD not in fields:
        return term
    own = change(_ANY_FIELD, values=(node_name,))
    return change(term, match_fields=tuple([own if field == _ANY_FIELD else field for field in fields]))


_ANY_FIELD = SelectorRequirement(key="metadata.name", operator="In", values=(_ANY_NODE,))


ShapeKeys = tuple[Key, ...] | None
"""The shapes of the nodes that have the name of a pod's node, as values; None for a pod that is pinned to no node."""


def read_shapes(facts: ClusterFacts, node_name: str) -> ShapeKeys:
    """Returns what a decision may read of the node to which a pod is pinned, if it is."""
    if not node_name:
        return None
    machines = facts.machines.get(_machine(node_name), ())
    return tuple([_shape_keys.value_for(machine.shape) for machine in machines])


_shape_keys: Derived[NodeShape, Key] = Derived(shape_key)


def _machine(node_name: str) -> Machine:
    return HOSTNAME_LABEL, node_name


def is_shareable(
    pod: Pod, likeness: bytes, own: bytes, pod_bytes: PodBytes, record: AdmissionRecord, *, is_reused: bool
) -> bool:
    """Returns whether the record holds for all pods that differ from this one only in the name of the token volume.

    It holds for them if the decoded pod contains the name only once, as the name of a volume whose source is not
    decoded, and if the record does not contain the name.

    likeness, own: the pod as JSON, in the parts of `template_instance.EncodedPod`. is_reused: the record is that of
    a pod of the same likeness, for which this function returned True; then only `own` is searched.
    """
    if not pod_bytes.token_name:
        return True
    volume_name = pod_bytes.token_name[1:-1]
    if volume_name in record.patch or (record.warnings and volume_name in msgspec.json.encode(record.warnings)):
        return False
    if volume_name in own:
        return False
    occurrences = 0 if is_reused else likeness.count(volume_name)
    if not occurrences:
        return True
    name = volume_name.decode()
    named = [volume for volume in pod.spec.volumes if volume.name == name]
    # No decision reads the parts of a projected volume.
    return occurrences == len(named) == 1 and change(named[0], projected=UNSET) == Volume(name=name)


def is_of_any_node(pod_bytes: PodBytes, record: AdmissionRecord, reads: FactDependencies) -> bool:
    """Returns whether the record holds for the pods of all nodes of the same shape: it does not contain the name of the
    node, and no fact was asked by that name, other than the node's shape."""
    name = pod_bytes.node_name
    if not name:
        return True
    if name.encode() in encode_texts(record):
        return False
    return not any(
        name in (key if isinstance(key, tuple) else (key,)) and (field, key) != ("machines", _machine(name))
        for field, key in reads.keys
    )


def encode_texts(record: AdmissionRecord) -> bytes:
    """Returns everything that is said or sent about a pod, as JSON: a name that is not in these bytes is not in the
    decision, other than in the decided pod itself."""
    decision = record.decision
    assert decision is not None
    texts = (decision.changes, decision.fields_kept, decision.would, decision.skipped, decision.denied, record.warnings)
    # Short names occur in Base64 by chance; the patch itself is searched.
    response = record.response.replace(base64.b64encode(record.patch), b"") if record.patch else record.response
    return msgspec.json.encode(texts) + record.patch + response
