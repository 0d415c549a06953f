"""What can go wrong at the door, as one tree; each text says what was being done to what.

KubeFault                    all of them
├── NotConfigured            nothing tells where the cluster is, or how to log in
├── Unreachable              no answer: refused, reset, cut short, not in time
├── Refused                  an answer of 300 and more: status, reason, message, retry_after, causes
│   ├── NotAllowed           401, 403: who we are may not do this
│   ├── NotFound             404: not there, or this server does not serve the kind
│   ├── Conflict             409: it is there already, or changed since it was read, or is another one by now
│   ├── Gone                 410: the version asked for is no longer kept
│   └── TooMany              429: not now; `retry_after` is None where the server does not say when
├── Garbled                  an answer that makes no sense
└── NotLeading               a write that may only be done by the leader, and we are not (or not for long enough)
"""

import msgspec

from trimtab.runtime.files import RuntimeFault


class KubeFault(RuntimeFault):
    """Something at the door to the API server."""


class NotConfigured(KubeFault):
    """Nothing tells where the cluster is, or how to log in."""


class Unreachable(KubeFault):
    """Nobody answered, or not in time, or not to the end."""


class InvalidResponse(KubeFault):
    """The answer makes no sense to us."""


class NotLeading(KubeFault):
    """Only the leader may write this, and we are not it, or not for long enough to finish."""


class Cause(msgspec.Struct, frozen=True):
    """One of the details of a Status."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True, rename="camel"):
    causes: tuple[Cause, ...] | None = None
    retry_after_seconds: int = 0


class ApiStatus(msgspec.Struct, frozen=True, rename="camel"):
    """A metav1.Status, as far as we read it."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None


class RequestRefused(KubeFault):
    """The API server said no, in its own words."""

    def __init__(self, doing: str, code: int, status: ApiStatus, retry_after: float | None = None) -> None:
        said = status.message or status.reason or "no reason given"
        super().__init__(f"{doing}: {code} {status.reason}: {said}" if status.reason else f"{doing}: {code}: {said}")
        self.status = code
        self.reason = status.reason
        self.message = status.message
        self.retry_after = retry_after
        """Seconds; None where the server does not say."""
        self.causes = (status.details.causes or ()) if status.details else ()


class NotAllowed(RequestRefused):
    """401 or 403."""


class NotFound(RequestRefused):
    """404."""


class Conflict(RequestRefused):
    """409."""


class ResourceVersionGone(RequestRefused):
    """410."""


class TooManyRequests(RequestRefused):
    """429."""


_BY_CODE: dict[int, type[RequestRefused]] = {
    401: NotAllowed, 403: NotAllowed, 404: NotFound, 409: Conflict, 410: ResourceVersionGone, 429: TooManyRequests,
}  # fmt: skip


def refused(doing: str, code: int, body: bytes, retry_after: str | None = None) -> RequestRefused:
    """The error for an answer of 300 and more. What is no Status is quoted."""
    return of_status(doing, code, _status(body), retry_after)


def of_status(doing: str, code: int, status: ApiStatus, retry_after: str | None = None) -> RequestRefused:
    """The header counts before the body: a proxy may have written it."""
    seconds = _seconds(retry_after)
    if seconds is None and status.details and status.details.retry_after_seconds > 0:
        seconds = float(status.details.retry_after_seconds)
    return _BY_CODE.get(code, RequestRefused)(doing, code, status, seconds)


def _status(body: bytes) -> ApiStatus:
    try:
        return msgspec.json.decode(body, type=ApiStatus)
    except (msgspec.DecodeError, UnicodeError):
        return ApiStatus(message=body[:500].decode(errors="replace").strip())


def _seconds(header: str | None) -> float | None:
    try:
        return float(header) if header else None
    except ValueError:
        return None  # a date: nobody in front of an API server writes one
