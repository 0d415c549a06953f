"""Is this PodPolicy or pool one that may enter the cluster? Bytes of a review in, bytes of the answer out.

What the CRD's schema can say the API server has refused before; everything deeper is refused here, with the loaders'
own messages. Pools are ConfigMaps with the label `trimtab.dev/pool`; no other ConfigMap is any of our business.
"""

from collections.abc import Callable, Iterable
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
        return 200, wire.encode(review, wire.allow(b"", (), {}))
    return 200, wire.encode(review, wire.deny(problem, {}, code=422, reason="Invalid"))


def _problem(request: wire.Request) -> str | None:
    """Why the object must not be stored; None: it may, or it is none of our business."""
    asked = request.resource
    wrong = _CHECKS.get((asked.group, asked.resource))
    if wrong is None or request.operation not in ("CREATE", "UPDATE"):
        return None
    if request.sub_resource:  # a status changes no policy
        return None
    try:
        value = msgspec.json.decode(bytes(request.object))
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return f"the object cannot be read: {error}"
    if _leaving(value):
        return None
    return "\n".join(map(_told, wrong(value))) or None


def _policy(value: Any) -> Iterable[Mistake]:
    return load_document(Document(file=KIND, index=0, value=value))[1]


def _pool(value: Any) -> Iterable[Mistake]:
    return pools([Document(file="", index=0, value=value)]).mistakes


_CHECKS: dict[tuple[str, str], Callable[[Any], Iterable[Mistake]]] = {
    (GROUP, PLURAL): _policy,
    ("", "configmaps"): _pool,
}
"""(group, resource) → what is wrong with an object of it."""


def _told(mistake: Mistake) -> str:
    """With its place where it has a line: that is one of the settings inside a ConfigMap."""
    return str(mistake).strip() if mistake.line else mistake.sentence


def _leaving(value: Any) -> bool:
    """Is it being deleted? Then only its finalizers change, and that must not be held up."""
    metadata = value.get("metadata") if isinstance(value, dict) else None
    return isinstance(metadata, dict) and bool(metadata.get("deletionTimestamp"))
