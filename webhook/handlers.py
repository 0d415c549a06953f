"""What goes back over HTTP.

What the web server needs from everybody else: a handful of functions.

HTTP's share of a review: what is refused before it is read, and the net under the deciding function.

Flask and the direct route both answer with `answer`, so their bytes are the same.

What the two probes answer: from memory and at once, so that they can be answered on the event loop.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

import msgspec

from trimtab.runtime.graceful_shutdown import GracefulShutdown

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A status code, a body, and what the body is. The same for Flask and for the direct route."""

    status: int
    body: bytes
    content_type: str = JSON


@dataclass(frozen=True, slots=True)
class DeferredReply:
    """No reply yet: it hangs on an owner of pods that was made this moment."""

    is_told: Callable[[], bool]
    """Is that owner known by now?"""


def problem(status: int, error: str, expected: str) -> HttpReply:
    """A refusal in two sentences: what is wrong, and what would have been right."""
    return HttpReply(status, msgspec.json.encode({"error": error, "expected": expected}))


def text(status: int, says: str, reason: str) -> HttpReply:
    """A short state for probes and people: `{"status": …, "reason": …}`."""
    return HttpReply(status, msgspec.json.encode({"status": says, "reason": reason}))


def _nothing(*_: object) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The functions behind the routes. `webhook.main` builds the real one, tests build their own."""

    mutate: Callable[[bytes], HttpReply]
    """An AdmissionReview's bytes to its answer. Runs on the event loop: no waiting, no I/O."""

    attempt: Callable[[bytes], HttpReply | DeferredReply] | None = None
    """The same for who can wait a moment; None where there is nothing to wait for."""

    validate: Callable[[bytes], HttpReply]
    """The same for our own policies. Runs on a thread."""

    ready: Callable[[], tuple[bool, str]]
    """Whether reviews should come here, and why or why not. A stop that has begun is added by us."""

    metrics: Callable[[], bytes]
    """The Prometheus text for a scrape."""

    failed: Callable[[str, Exception], None] = _nothing
    """Told of an exception that got as far as the edge: the path and the exception. To log and count."""

    observe: Callable[[str, int, float], None] = _nothing
    """Told of every review: the path, the HTTP status, and the seconds the answer took."""

    close: Callable[[], None] = _nothing
    """Called once when the process ends in good order: stop watches, flush records."""

    stop: GracefulShutdown = field(default_factory=GracefulShutdown)
    """Begun when the process is asked to stop; from then on `/readyz` says no."""


MAX_BODY = 8 * 1024 * 1024
"""Bytes. etcd takes objects of 1.5 MiB, and a review carries at most two of them: nothing real is larger."""

MAX_CHECKED = 512 * 1024
"""Bytes of a review of a policy or a pool: its document may have 64 kB, and the review holds it up to four times, with
the object before and with what `kubectl apply` notes in both."""

MUTATE, VALIDATE = "/mutate", "/validate"

MAX_BYTES = {MUTATE: MAX_BODY, VALIDATE: MAX_CHECKED}
"""Of a body, by path."""


class _Request(msgspec.Struct):
    uid: str


class _Review(msgspec.Struct):
    request: _Request


_UID = msgspec.json.Decoder(_Review)


def answer(service: Service, path: str, content_type: str, body: bytes | None) -> HttpReply:
    """The reply for a POST to one of the two review paths. `body` None means it was over the path's `MAX_BYTES`.

    Never raises and never gives a 500: an exception of the deciding function becomes "allowed,
    unchanged" where the review's uid can be read, and a 400 where it cannot.
    """
    decide = service.mutate if path == MUTATE else service.validate
    reply = _observed(service, decide, path, content_type, body)
    assert isinstance(reply, HttpReply), "only an attempt may come back without one"
    return reply


def attempt(service: Service, content_type: str, body: bytes | None) -> HttpReply | DeferredReply:
    """The same for the review of a pod by who can wait a moment: for the owner that `DeferredReply` tells of."""
    return _observed(service, service.attempt or service.mutate, MUTATE, content_type, body)


Decide = Callable[[bytes], HttpReply | DeferredReply]


def _observed(
    service: Service, decide: Decide, path: str, content_type: str, body: bytes | None
) -> HttpReply | DeferredReply:
    began = perf_counter()
    reply = _refusal(path, content_type, body) or _decided(service, decide, path, body or b"")
    if isinstance(reply, HttpReply):
        service.observe(path, reply.status, perf_counter() - began)
    return reply


def _refusal(path: str, content_type: str, body: bytes | None) -> HttpReply | None:
    if content_type != JSON and content_type.partition(";")[0].strip().lower() != JSON:
        return problem(415, "this content type is not served here", f"Content-Type: {JSON}")
    if body is None:
        return problem(413, "the body is too large", f"at most {MAX_BYTES[path]} bytes")
    return None


def _decided(service: Service, decide: Decide, path: str, body: bytes) -> HttpReply | DeferredReply:
    try:
        return decide(body)
    except Exception as e:  # noqa: BLE001  the last net: a pod must not wait for our mistakes
        service.failed(path, e)
        return _unchanged(body)


def _unchanged(body: bytes) -> HttpReply:
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
    return HttpReply(200, msgspec.json.encode(review))


HEALTHZ, READYZ = "/healthz", "/readyz"

PROBES = frozenset({HEALTHZ, READYZ})


def probe(service: Service, path: str) -> HttpReply:
    """The reply for a GET of one of the two paths. Never raises: what fails inside is a 500, told to the service."""
    try:
        return text(200, "ok", "the process answers") if path == HEALTHZ else _readiness(service)
    except Exception as e:  # noqa: BLE001  the last net: a kubelet must not wait for our mistakes
        service.failed(path, e)
        return problem(500, "internal error", "see this process's log")


def _readiness(service: Service) -> HttpReply:
    if service.stop.begun:
        return text(503, "stopping", "the process was asked to stop")
    ready, why = service.ready()
    return text(200, "ready", why) if ready else text(503, "not ready", why)
