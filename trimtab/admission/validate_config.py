"""Validates PodPolicies and pools: takes the bytes of a review, and returns an HTTP status and the bytes of the
response.

The API server has already rejected what the CRD's schema excludes. Everything that the schema cannot express is
rejected here, with the same messages as for files. Pools are ConfigMaps with the label `trimtab.dev/pool`; other
ConfigMaps are always admitted.
"""

from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from trimtab.admission import admission_review as wire
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.pool_config import read_pools
from trimtab.cluster.pool_labels import POOL_LABEL
from trimtab.cluster.yaml_documents import Document
from trimtab.policy.load import load_document
from trimtab.policy.policy_kind import KIND
from trimtab.policy.schema import GROUP, PLURAL


def validate_review(body: bytes) -> tuple[int, bytes]:
    """Returns the HTTP status and the response. The status is 400 for a body that is not a review, otherwise 200."""
    try:
        review = wire.decode(body)
    except wire.NotAReview as error:
        return 400, msgspec.json.encode({"error": str(error)})
    problem = _why_invalid(review.request, body)
    if problem is None:
        return 200, wire.encode(review, wire.encode_allowed(b"", (), {}))
    return 200, wire.encode(review, wire.encode_denied(problem, {}, code=422, reason="Invalid"))


def _why_invalid(request: wire.AdmissionRequest, body: bytes) -> str | None:
    """Returns why the object must not be stored; None if it may be, or if it is neither a policy nor a pool."""
    resource = request.resource
    find_errors = _CHECKS.get((resource.group, resource.resource))
    if find_errors is None or request.operation not in ("CREATE", "UPDATE"):
        return None
    if request.sub_resource:  # an update of the status does not change the policy
        return None
    raw = bytes(request.object)
    try:
        head = _decode_head(raw)
        if head.metadata.deletion_timestamp:  # only the finalizers can change then, and that must not be blocked
            return None
        size_problem = _size_problem(head, raw)
        if size_problem:
            return size_problem
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return f"the object cannot be read: {error}"
    errors = find_errors(value, is_changed=request.operation == "CREATE" or not _has_same_spec(body, head))
    return "\n".join(map(_error_text, errors)) or None


class _OldObject(msgspec.Struct, frozen=True):
    spec: msgspec.Raw = msgspec.Raw()


class _OldRequest(msgspec.Struct, frozen=True, rename="camel"):
    old_object: _OldObject | None = None


class _OldReview(msgspec.Struct, frozen=True):
    request: _OldRequest


def _has_same_spec(body: bytes, head: "_ObjectHead") -> bool:
    """Returns whether the review is of an update that leaves the spec as it was stored, as one of a label does."""
    try:
        old = msgspec.json.decode(body, type=_OldReview).request.old_object
        return old is not None and bool(old.spec) and msgspec.json.decode(old.spec) == msgspec.json.decode(head.spec)
    except msgspec.DecodeError:
        return False


MAX_ENTRIES = 4_000
"""The maximum number of entries of lists and mappings in a policy's spec, at any depth. The largest policy in
`policies/` has a hundred."""


def _policy_errors(value: Any, *, is_changed: bool) -> Iterable[ConfigError]:
    document = Document(file=KIND, index=0, value=value)
    entry_count = _count_entries(value.get("spec") if isinstance(value, dict) else None)
    if entry_count > MAX_ENTRIES:
        return [document.error_at(("spec",), f"at most {MAX_ENTRIES} entries in lists and mappings", str(entry_count))]
    return load_document(document, is_authoring=is_changed)[1]


def _count_entries(value: Any) -> int:
    """Returns the number of entries of all lists and mappings in the value. Each entry may be a mistake, and each
    mistake takes time to report."""
    count, pending = 0, [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict | list):
            count += len(item)
            pending += item.values() if isinstance(item, dict) else item
    return count


def _pool_errors(value: Any, *, is_changed: bool) -> Iterable[ConfigError]:
    return read_pools([Document(file="", index=0, value=value)]).mistakes


class _FindErrors(Protocol):
    def __call__(self, value: Any, *, is_changed: bool) -> Iterable[ConfigError]:
        """Returns the mistakes. `is_changed`: the object is new, or its spec is."""


_CHECKS: dict[tuple[str, str], _FindErrors] = {(GROUP, PLURAL): _policy_errors, ("", "configmaps"): _pool_errors}
"""(group, resource) → the function that finds the mistakes in such an object."""


def _error_text(error: ConfigError) -> str:
    """Returns the message of the mistake, with its position if it has a line, as mistakes in the settings inside a
    ConfigMap have."""
    return str(error).strip() if error.line else error.sentence


MAX_BYTES = 64 * 1024
"""The maximum size in bytes of a pool's settings, or of a policy's spec. The largest in the repository has four
thousand."""
_MAX_WHOLE_BYTES = 4 * MAX_BYTES
"""The maximum size in bytes of the whole object, including its metadata and managed fields, which repeat the names of
all fields."""


class _HeadMetadata(msgspec.Struct, frozen=True, rename="camel"):
    labels: dict[str, str] | None = None
    deletion_timestamp: str | None = None


class _ObjectHead(msgspec.Struct, frozen=True):
    """Those fields of an object that are checked before all of it is decoded."""

    metadata: _HeadMetadata = _HeadMetadata()
    spec: msgspec.Raw = msgspec.Raw()
    data: msgspec.Raw = msgspec.Raw()


_head_decoder = msgspec.json.Decoder(_ObjectHead)


def _decode_head(raw: bytes) -> _ObjectHead:
    """Returns the fields of an object that are checked first. A field with a wrong type gets an empty value; the
    mistake is reported with its position later."""
    try:
        return _head_decoder.decode(raw)
    except msgspec.ValidationError:
        return _ObjectHead()


def _size_problem(head: _ObjectHead, raw: bytes) -> str:
    """Returns why the object is too large to be validated; an empty string if it is not too large, or is neither a pool
    nor a policy."""
    is_policy = bool(len(head.spec))
    if len(raw) <= MAX_BYTES or not (is_policy or POOL_LABEL in (head.metadata.labels or {})):
        return ""
    size = len(head.spec) if is_policy else len(head.data)
    if size > MAX_BYTES:
        return f"{'spec' if is_policy else 'data'}: expected at most {MAX_BYTES} bytes, got {size}"
    if len(raw) > _MAX_WHOLE_BYTES:
        return f"metadata: expected at most {_MAX_WHOLE_BYTES} bytes in the whole object, got {len(raw)}"
    return ""
