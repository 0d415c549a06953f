"""Decodes AdmissionReview v1 requests and encodes the responses, as far as Trimtab reads and writes them."""

import base64
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from trimtab.cluster.api.meta import ApiObject

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"


class GroupVersionResource(ApiObject, frozen=True, kw_only=True):
    group: str = ""
    version: str = ""
    resource: str = ""


class _User(msgspec.Struct):
    username: str = ""


class AdmissionRequest(ApiObject, frozen=True, kw_only=True):
    """The request in a review. `object` and `user_info` (the user who sent the request) are not decoded until they are
    needed."""

    uid: str
    resource: GroupVersionResource = GroupVersionResource()
    sub_resource: str = ""
    namespace: str = ""
    name: str = ""
    operation: str = ""
    dry_run: bool = False
    object: Raw = Raw()
    user_info: Raw = Raw()

    @property
    def user_name(self) -> str:
        """The name of the user who sent the request; empty if it is absent or cannot be read."""
        try:
            return msgspec.json.decode(self.user_info, type=_User).username
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return ""


NO_REQUEST = AdmissionRequest(uid="")
"""The request of a body that is not a review."""


class Review(ApiObject, frozen=True, kw_only=True):
    request: AdmissionRequest
    api_version: str = ""
    kind: str = ""


_decoder = msgspec.json.Decoder(Review)
_encoder = msgspec.json.Encoder()


class NotAReview(ValueError):
    """Raised for a body that cannot be answered as a review, because it has no uid. The text says what was expected."""


def decode(body: bytes) -> Review:
    """Returns the review in these bytes. Raises NotAReview if the bytes are not JSON, or if the review has no request
    with a uid."""
    try:
        review = _decoder.decode(body)
    except msgspec.ValidationError as error:
        raise NotAReview(f"expected an {KIND} whose request has a uid: {error}") from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise NotAReview(f"expected JSON: {error}") from None
    except RecursionError:
        review = _without_object(body)
    if not review.request.uid:
        raise NotAReview(f"expected an {KIND} whose request has a uid, got an empty uid")
    return review


def _without_object(body: bytes) -> Review:
    """Returns a review that is nested too deeply, without its object: `object` is empty bytes, which do not decode as a
    pod.

    `metadata.managedFields` may be nested so deeply. The API server writes all fields that describe the request before
    the object, so the bytes before `,"object":` are enough. These bytes do not occur inside a string, because quotes
    are escaped there.
    """
    head, separator, _ = body.partition(b',"object":')
    try:
        return _decoder.decode(head + b"}}") if separator else _raise_too_deep()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _raise_too_deep()


def _raise_too_deep() -> Review:
    raise NotAReview("expected JSON with fewer levels of nesting")


def encode(review: Review, response: bytes) -> bytes:
    """Returns the bytes of the whole AdmissionReview. `response` is its last part, from `encode_allowed` or
    `encode_denied`."""
    version = review.api_version
    start = _START if version in (API_VERSION, "") else _encode_start(version)
    return b"".join((start, _encoder.encode(review.request.uid), b",", response))


def encode_allowed(patch: bytes, warnings: tuple[str, ...], audit: Mapping[str, str]) -> bytes:
    """Returns the last part of a response that admits the object. `patchType` is set if and only if there is a
    patch."""
    response: dict[str, Any] = {"allowed": True}
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(patch).decode()
    return _encode_end(response, warnings, audit)


def encode_denied(message: str, audit: Mapping[str, str], *, code: int = 403, reason: str = "Forbidden") -> bytes:
    """Returns the last part of a response that rejects the object, with a message for the user."""
    status = {"code": code, "reason": reason, "message": message}
    return _encode_end({"allowed": False, "status": status}, (), audit)


def _encode_end(response: dict[str, Any], warnings: tuple[str, ...], audit: Mapping[str, str]) -> bytes:
    if warnings:
        response["warnings"] = warnings
    if audit:
        response["auditAnnotations"] = dict(audit)
    # The response object is spliced as bytes: `encode` writes `{"uid":…,` in front, so the opening brace is cut off
    # here, and the closing brace of the AdmissionReview is added. Findings share these bytes between reviews; only the
    # uid differs.
    return _encoder.encode(response)[1:] + b"}"


def _encode_start(version: str) -> bytes:
    return b'{"apiVersion":%s,"kind":"%s","response":{"uid":' % (_encoder.encode(version), KIND.encode())


_START = _encode_start(API_VERSION)
