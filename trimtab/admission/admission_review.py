"""What does the API server ask, and in what form is it answered? AdmissionReview v1, as far as we read and write it."""

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


class AdmissionRequest(ApiObject, frozen=True, kw_only=True):
    """`object` stays undecoded until it is known what it is, and who asks until somebody wants to know."""

    uid: str
    resource: GroupVersionResource = GroupVersionResource()
    sub_resource: str = ""
    namespace: str = ""
    name: str = ""
    operation: str = ""
    dry_run: bool = False
    object: Raw = Raw()
    user_info: Raw = Raw()


class Review(ApiObject, frozen=True, kw_only=True):
    request: AdmissionRequest
    api_version: str = ""
    kind: str = ""


_decoder = msgspec.json.Decoder(Review)
_encoder = msgspec.json.Encoder()


class NotAReview(ValueError):
    """The body cannot be answered as a review: there is no uid to answer to. The text says what was expected."""


def decode(body: bytes) -> Review:
    """The review in these bytes. Raises NotAReview when it is no JSON, or has no request with a uid."""
    try:
        review = _decoder.decode(body)
    except msgspec.ValidationError as error:
        raise NotAReview(f"expected an {KIND} with a request that has a uid: {error}") from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise NotAReview(f"expected JSON: {error}") from None
    except RecursionError:
        review = _without_object(body)
    if not review.request.uid:
        raise NotAReview(f"expected an {KIND} whose request has a uid, got an empty one")
    return review


def _without_object(body: bytes) -> Review:
    """The review in front of an object that is nested too deeply; the object is empty bytes, which are no pod.

    `metadata.managedFields` may hold such a tree. The API server writes the object behind all that says what is asked,
    and inside of a string these bytes do not occur: quotes are escaped there.
    """
    head, found, _ = body.partition(b',"object":')
    try:
        return _decoder.decode(head + b"}}") if found else _too_deep()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _too_deep()


def _too_deep() -> Review:
    raise NotAReview("expected JSON that is not nested this deeply")


def encode(review: Review, response: bytes) -> bytes:
    """The answer's bytes: who is answered, and what (see `allow`, `deny`)."""
    version = review.api_version
    start = _START if version in (API_VERSION, "") else _start(version)
    return b"".join((start, _encoder.encode(review.request.uid), b",", response))


def allow(patch: bytes, warnings: tuple[str, ...], audit: Mapping[str, str]) -> bytes:
    """The end of an answer that lets the pod through. `patchType` is there exactly where a patch is."""
    response: dict[str, Any] = {"allowed": True}
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(patch).decode()
    return _end(response, warnings, audit)


def deny(message: str, audit: Mapping[str, str], *, code: int = 403, reason: str = "Forbidden") -> bytes:
    """The end of an answer that refuses the object, with the message for whoever sent it."""
    status = {"code": code, "reason": reason, "message": message}
    return _end({"allowed": False, "status": status}, (), audit)


def _end(response: dict[str, Any], warnings: tuple[str, ...], audit: Mapping[str, str]) -> bytes:
    if warnings:
        response["warnings"] = warnings
    if audit:
        response["auditAnnotations"] = dict(audit)
    return _encoder.encode(response)[1:] + b"}"


def _start(version: str) -> bytes:
    return b'{"apiVersion":%s,"kind":"%s","response":{"uid":' % (_encoder.encode(version), KIND.encode())


_START = _start(API_VERSION)
