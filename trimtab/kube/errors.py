"""Errors of requests to the API server, as one tree; each text names the operation and the object.

KubeFault                    all of them
├── NotConfigured            no configuration says where the cluster is, or how to authenticate
├── Unreachable              no complete response: refused, reset, cut short, not in time
├── RequestRefused           a response with status 300 or more: status, reason, message, retry_after, causes
│   ├── NotAllowed           401, 403: the identity may not do this
│   ├── NotFound             404: the object does not exist, or the server does not serve the kind
│   ├── Conflict             409: the object exists already, changed since it was read, or is a different one by now
│   ├── ResourceVersionGone  410: the requested version is no longer available
│   └── TooManyRequests      429: try later; `retry_after` is None if the server does not say when
├── InvalidResponse          a response that cannot be decoded
└── NotLeading               a write that only the leader may do, and this replica does not lead (long enough)
"""

import msgspec

from trimtab.runtime.files import RuntimeFault


class KubeFault(RuntimeFault):
    """An error in a request to the API server."""


class NotConfigured(KubeFault):
    """There is no configuration that says where the cluster is, or how to authenticate."""


class Unreachable(KubeFault):
    """There was no response, or it was not complete in time."""


class InvalidResponse(KubeFault):
    """The response cannot be decoded."""


class NotLeading(KubeFault):
    """Only the leader may write this, and this replica does not lead, or not for long enough to finish the write."""


class Cause(msgspec.Struct, frozen=True):
    """One cause in the details of a Status."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True, rename="camel"):
    causes: tuple[Cause, ...] | None = None
    retry_after_seconds: int = 0


class ApiStatus(msgspec.Struct, frozen=True, rename="camel"):
    """A Kubernetes Status object (metav1.Status), reduced to the fields that are read."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None


class RequestRefused(KubeFault):
    """The API server refused the request, with its own message."""

    def __init__(self, doing: str, code: int, status: ApiStatus, retry_after: float | None = None) -> None:
        message = status.message or status.reason or "the response gives no reason"
        super().__init__(
            f"{doing}: {code} {status.reason}: {message}" if status.reason else f"{doing}: {code}: {message}"
        )
        self.status = code
        self.reason = status.reason
        self.message = status.message
        self.retry_after = retry_after
        """Seconds, or None if the server does not say."""
        self.causes = (status.details.causes or ()) if status.details else ()


class NotAllowed(RequestRefused):
    """The API server refused the request with 401 or 403: this identity may not do it."""


class NotFound(RequestRefused):
    """The API server answered 404: the object does not exist, or the server does not serve its kind."""


class Conflict(RequestRefused):
    """The API server answered 409: the object already exists, has changed since it was read, or has been replaced by
    another."""


class ResourceVersionGone(RequestRefused):
    """The API server answered 410: the requested resource version is no longer available."""


class TooManyRequests(RequestRefused):
    """The API server answered 429: try again later."""


_BY_CODE: dict[int, type[RequestRefused]] = {
    401: NotAllowed,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    410: ResourceVersionGone,
    429: TooManyRequests,
}


def refusal_of_response(doing: str, code: int, body: bytes, retry_after: str | None = None) -> RequestRefused:
    """Returns the error for a response with status 300 or more. If the body is not a Status, the error quotes the
    body."""
    return refusal_of_status(doing, code, _decode_status(body), retry_after)


def refusal_of_status(doing: str, code: int, status: ApiStatus, retry_after: str | None = None) -> RequestRefused:
    """Returns the error for a Status. The Retry-After header counts before the value in the body, because a proxy may
    have set it."""
    seconds = _retry_after_seconds(retry_after)
    if seconds is None and status.details and status.details.retry_after_seconds > 0:
        seconds = float(status.details.retry_after_seconds)
    return _BY_CODE.get(code, RequestRefused)(doing, code, status, seconds)


def _decode_status(body: bytes) -> ApiStatus:
    try:
        return msgspec.json.decode(body, type=ApiStatus)
    except (msgspec.DecodeError, UnicodeError):
        return ApiStatus(message=body[:500].decode(errors="replace").strip())


def _retry_after_seconds(header: str | None) -> float | None:
    try:
        return float(header) if header else None
    except ValueError:
        return None  # a date, which no API server and no proxy in front of one sends
