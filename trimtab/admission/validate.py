"""Is this PodPolicy, or this pool's ConfigMap, one that may enter the cluster? Bytes of a review in, bytes out.

What the CRD's schema can say the API server has refused before; everything deeper is refused here, with the loader's
own messages.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from trimtab.admission import review as wire
from trimtab.cluster.documents import Document
from trimtab.cluster.mistake import Mistake
from trimtab.cluster.pool_file import pools
from trimtab.policy.document import KIND
from trimtab.policy.load import load_document
from trimtab.policy.schema import GROUP, PLURAL


def validate(body: bytes) -> tuple[int, bytes]:
    """HTTP status and body. 400 for what is no review; a review always gets its answer."""
    try:
        review = wire.decode(body)
    except wire.NotAReview as error:
        return 400, msgspec.json.encode({"error": str(error)})
    problem = _problem(review.request)
    if problem is None:
        return 200, wire.encode(review, wire.allow((), (), {}))
    return 200, wire.encode(review, wire.deny(problem, {}, code=422, reason="Invalid"))


def _problem(request: wire.Request) -> str | None:
    """Why the object must not be stored; None: it may, or it is none of our business."""
    named = (request.resource.group, request.resource.resource)
    if named not in _KINDS or request.operation not in ("CREATE", "UPDATE"):
        return None
    if request.sub_resource:  # a status changes no policy
        return None
    kind, mistakes_of = _KINDS[named]
    try:
        value = msgspec.json.decode(bytes(request.object))
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return f"the {kind} cannot be read: {error}"
    if _leaving(value):
        return None
    mistakes = mistakes_of(Document(file=kind, index=0, value=value))
    return "\n".join(mistake.sentence for mistake in mistakes) or None


def _of_policy(document: Document) -> Iterable[Mistake]:
    return load_document(document)[1]


def _of_pool(document: Document) -> Iterable[Mistake]:
    """A ConfigMap without the pool's label has none: it is none of our business."""
    return pools([document]).mistakes


_KINDS: Mapping[tuple[str, str], tuple[str, Callable[[Document], Iterable[Mistake]]]] = {
    (GROUP, PLURAL): (KIND, _of_policy),
    ("", "configmaps"): ("ConfigMap", _of_pool),
}
"""(group, plural) → kind, and who knows its mistakes."""


def _leaving(value: Any) -> bool:
    """Is it being deleted? Then only its finalizers change, and that must not be held up."""
    metadata = value.get("metadata") if isinstance(value, dict) else None
    return isinstance(metadata, dict) and bool(metadata.get("deletionTimestamp"))
