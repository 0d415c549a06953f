"""Replies to HTTP requests, independent of the web server: reviews, probes, and rejections before a body is decoded.

Flask and the ASGI route both use `answer_review`, so their bytes are equal. Probes are answered from memory, so that
they can run on the event loop. `Service` holds the functions behind the routes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

import msgspec

from trimtab.runtime.graceful_shutdown import GracefulShutdown
from webhook.request_body import MAX_BYTES_BY_PATH, MUTATE

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A status code, a body, and its content type; used by Flask and by the ASGI route."""

    status: int
    body: bytes
    content_type: str = JSON


@dataclass(frozen=True, slots=True)
class DeferredReply:
    """Returned instead of a reply while it depends on an owner that was just created."""

    is_told: Callable[[], bool]
    """Returns whether the owner is known by now."""
    namespace: str
    """The namespace of the owner and of the pod."""


def problem_reply(status: int, error: str, expected: str) -> HttpReply:
    """Returns an error reply: what is wrong, and what was expected."""
    return HttpReply(status, msgspec.json.encode({"error": error, "expected": expected}))


def status_reply(status: int, says: str, reason: str) -> HttpReply:
    """Returns a short state for probes and people: `{"status": …, "reason": …}`."""
    return HttpReply(status, msgspec.json.encode({"status": says, "reason": reason}))


def _do_nothing(*_: object) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The functions behind the routes. `webhook.main` builds the real one, tests build their own."""

    mutate: Callable[[bytes], HttpReply]
    """Returns the response to the bytes of an AdmissionReview. Runs on the event loop: no waiting, no I/O."""

    attempt: Callable[[bytes], HttpReply | DeferredReply] | None = None
    """Like `mutate`, for a caller that can wait a moment. None: there is nothing to wait for."""

    validate: Callable[[bytes], HttpReply]
    """The same for reviews of policies and pools. Runs on a thread."""

    ready: Callable[[], tuple[bool, str]]
    """Returns whether this replica should receive reviews, and why or why not. A stop in progress is added by
    `answer_probe`."""

    metrics: Callable[[], bytes]
    """Returns the Prometheus text for a scrape."""

    failed: Callable[[str, Exception], None] = _do_nothing
    """Called with the path and an exception that reached the HTTP layer: logs and counts it."""

    observe: Callable[[str, int, float], None] = _do_nothing
    """Called for every review with the path, the HTTP status, and the seconds until the response."""

    close: Callable[[], None] = _do_nothing
    """Called once when the process ends normally: stops watches, flushes records."""

    stop: GracefulShutdown = field(default_factory=GracefulShutdown)
    """Begun when the process is asked to stop; from then on `/readyz` fails."""


class _Request(msgspec.Struct):
    uid: str


class _Review(msgspec.Struct):
    request: _Request


_uid_decoder = msgspec.json.Decoder(_Review)


def answer_review(service: Service, path: str, content_type: str, body: bytes | None) -> HttpReply:
    """Returns the reply for a POST to one of the two review paths. `body` is None if it exceeded the path's
    limit in `request_body.MAX_BYTES_BY_PATH`.

    Never raises and never returns a 500: after an exception the object is allowed unchanged if the review's uid can be
    decoded, else the reply is a 400.
    """
    decide = service.mutate if path == MUTATE else service.validate
    reply = _reply_and_observe(service, decide, path, content_type, body)
    assert isinstance(reply, HttpReply), "only `attempt_review` may return a DeferredReply"
    return reply


def attempt_review(service: Service, content_type: str, body: bytes | None) -> HttpReply | DeferredReply:
    """Like `answer_review` for the review of a pod, for a caller that can wait for the owner in the `DeferredReply`."""
    return _reply_and_observe(service, service.attempt or service.mutate, MUTATE, content_type, body)


Decide = Callable[[bytes], HttpReply | DeferredReply]


def _reply_and_observe(
    service: Service, decide: Decide, path: str, content_type: str, body: bytes | None
) -> HttpReply | DeferredReply:
    started = perf_counter()
    reply = _reject_request(path, content_type, body) or _call_decide(service, decide, path, body or b"")
    if isinstance(reply, HttpReply):
        service.observe(path, reply.status, perf_counter() - started)
    return reply


def _reject_request(path: str, content_type: str, body: bytes | None) -> HttpReply | None:
    if content_type != JSON and content_type.partition(";")[0].strip().lower() != JSON:
        return problem_reply(415, "this content type is not served here", f"Content-Type: {JSON}")
    if body is None:
        return problem_reply(413, "the body is too large", f"at most {MAX_BYTES_BY_PATH[path]} bytes")
    return None


def _call_decide(service: Service, decide: Decide, path: str, body: bytes) -> HttpReply | DeferredReply:
    try:
        return decide(body)
    except Exception as e:  # noqa: BLE001  no bug of Trimtab may block a pod
        service.failed(path, e)
        return _unchanged_reply(body)


def _unchanged_reply(body: bytes) -> HttpReply:
    try:
        uid = _uid_decoder.decode(body).request.uid
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return problem_reply(
            400, "the body is not a readable AdmissionReview", "an admission.k8s.io/v1 AdmissionReview"
        )
    response = {
        "uid": uid,
        "allowed": True,
        "warnings": ["trimtab: an internal error prevented a decision; the object is unchanged"],
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    return HttpReply(200, msgspec.json.encode(review))


HEALTHZ, READYZ = "/healthz", "/readyz"

PROBES = frozenset({HEALTHZ, READYZ})


def answer_probe(service: Service, path: str) -> HttpReply:
    """Returns the reply for a GET of one of the two probe paths. Never raises: an exception is a 500, reported to the
    service."""
    try:
        return status_reply(200, "ok", "the process answers") if path == HEALTHZ else _readiness(service)
    except Exception as e:  # noqa: BLE001  a probe must be answered despite any bug
        service.failed(path, e)
        return problem_reply(500, "internal error", "see this process's log")


def _readiness(service: Service) -> HttpReply:
    if service.stop.is_requested:
        return status_reply(503, "stopping", "the process is about to stop")
    ready, why = service.ready()
    return status_reply(200, "ready", why) if ready else status_reply(503, "not ready", why)
