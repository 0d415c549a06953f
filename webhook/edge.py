"""HTTP's share of a review: what is refused before it is read, and the net under the deciding function.

Flask and the direct route both answer with `answer`, so their bytes are the same.
"""

from collections.abc import Callable
from time import perf_counter

import msgspec

from webhook.reply import JSON, Reply, problem
from webhook.service import Service

MAX_BODY = 8 * 1024 * 1024
"""Bytes. etcd takes objects of 1.5 MiB, and a review carries at most two of them: nothing real is larger."""

MUTATE, VALIDATE = "/mutate", "/validate"


class _Request(msgspec.Struct):
    uid: str


class _Review(msgspec.Struct):
    request: _Request


_UID = msgspec.json.Decoder(_Review)


def answer(service: Service, path: str, content_type: str, body: bytes | None) -> Reply:
    """The reply for a POST to one of the two review paths. `body` None means it was over `MAX_BODY`.

    Never raises and never gives a 500: an exception of the deciding function becomes "allowed,
    unchanged" where the review's uid can be read, and a 400 where it cannot.
    """
    began = perf_counter()
    reply = _refusal(content_type, body)
    if reply is None:
        reply = _decided(service, path, body or b"")
    service.observe(path, reply.status, perf_counter() - began)
    return reply


def _refusal(content_type: str, body: bytes | None) -> Reply | None:
    if content_type != JSON and content_type.partition(";")[0].strip().lower() != JSON:
        return problem(415, "this content type is not served here", f"Content-Type: {JSON}")
    if body is None:
        return problem(413, "the body is too large", f"at most {MAX_BODY} bytes")
    return None


def _decided(service: Service, path: str, body: bytes) -> Reply:
    decide: Callable[[bytes], Reply] = service.mutate if path == MUTATE else service.validate
    try:
        return decide(body)
    except Exception as e:  # noqa: BLE001  the last net: a pod must not wait for our mistakes
        service.failed(path, e)
        return _unchanged(body)


def _unchanged(body: bytes) -> Reply:
    try:
        uid = _UID.decode(body).request.uid
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return problem(400, "the body is not a readable AdmissionReview", "an admission.k8s.io/v1 AdmissionReview")
    response = {
        "uid": uid,
        "allowed": True,
        "warnings": ["trimtab: an internal error kept it from deciding; the object is unchanged"],
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    return Reply(200, msgspec.json.encode(review))
