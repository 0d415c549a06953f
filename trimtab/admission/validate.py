"""Is this PodPolicy one that may enter the cluster? Bytes of a review in, bytes of the answer out.

What the CRD's schema can say the API server has refused before; everything deeper is refused here, with the loader's
own messages.
"""

from typing import Any

import msgspec

from trimtab.admission import review as wire
from trimtab.cluster.documents import Document
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
    asked = request.resource
    if (asked.group, asked.resource) != (GROUP, PLURAL) or request.operation not in ("CREATE", "UPDATE"):
        return None
    if request.sub_resource:  # a status changes no policy
        return None
    try:
        value = msgspec.json.decode(bytes(request.object))
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return f"the {KIND} cannot be read: {error}"
    if _leaving(value):
        return None
    _, mistakes = load_document(Document(file=KIND, index=0, value=value))
    return "\n".join(mistake.sentence for mistake in mistakes) or None


def _leaving(value: Any) -> bool:
    """Is it being deleted? Then only its finalizers change, and that must not be held up."""
    metadata = value.get("metadata") if isinstance(value, dict) else None
    return isinstance(metadata, dict) and bool(metadata.get("deletionTimestamp"))
