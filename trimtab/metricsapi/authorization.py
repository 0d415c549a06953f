"""Whether a user may read a metric. The API server decides this by SubjectAccessReview, and the answer is remembered
for a few seconds.

No answer is ever assumed: while the API server does not respond, no user gets a value.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from trimtab.cluster.fair_share import FairCache
from trimtab.kube.client import Client
from trimtab.kube.errors import InvalidResponse
from trimtab.metricsapi.api_request import GROUP, VERSION, DiscoveryRequest, MetricRequest
from trimtab.metricsapi.request_header import RemoteUser
from trimtab.runtime.clock import elapsed_seconds

PATH = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
REMEMBERED_SECONDS = 10.0
"""For how many seconds an answer is remembered: as long as in Kubernetes' own aggregated API servers (their
--authorization-webhook-cache flags)."""
MAX_REMEMBERED = 4096
"""The maximum number of answers. If there are more, the oldest of the user with the most are dropped. All
ServiceAccounts of a namespace are one user there."""
REVIEW_TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class AccessAnswer:
    """Whether a request is allowed, and the API server's explanation."""

    is_allowed: bool
    reason: str = ""


def build_access_review(user: RemoteUser, request: MetricRequest | DiscoveryRequest) -> dict[str, Any]:
    """Returns the SubjectAccessReview for a request. A metric of a pod is treated as a subresource of the pod, with the
    metric's name."""
    spec: dict[str, Any] = {"user": user.name, "groups": list(user.groups)}
    if user.uid:
        spec["uid"] = user.uid
    if user.extra:
        spec["extra"] = {key: list(values) for key, values in user.extra}
    if isinstance(request, DiscoveryRequest):
        spec["nonResourceAttributes"] = {"path": request.path, "verb": "get"}
    else:
        spec["resourceAttributes"] = {
            "namespace": request.namespace,
            "verb": "get",
            "group": GROUP,
            "version": VERSION,
            "resource": "pods",
            "subresource": request.metric,
            "name": request.name,
        }
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}


class _ReviewStatus(msgspec.Struct, frozen=True):
    allowed: bool = False
    denied: bool = False
    reason: str = ""


class _Review(msgspec.Struct, frozen=True):
    status: _ReviewStatus = _ReviewStatus()


def decode_access_review(body: bytes) -> AccessAnswer:
    """Returns the API server's answer to a SubjectAccessReview. Raises InvalidResponse."""
    try:
        status = msgspec.json.decode(body, type=_Review).status
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidResponse(f"create a SubjectAccessReview: {error}") from error
    return AccessAnswer(status.allowed and not status.denied, status.reason)


def ask_api_server(client: Client) -> Callable[[dict[str, Any]], AccessAnswer]:
    """Returns a function that sends a SubjectAccessReview to the API server. The function raises any KubeFault."""

    def ask(review: dict[str, Any]) -> AccessAnswer:
        body = client.request(
            "POST", PATH, body=review, deadline=REVIEW_TIMEOUT_SECONDS, doing="create a SubjectAccessReview"
        )
        return decode_access_review(body)

    return ask


_Key = tuple[RemoteUser, MetricRequest | DiscoveryRequest]


@dataclass(slots=True)
class Authorizer:
    """Authorizes requests, and remembers the answers by user and request. Thread-safe."""

    ask: Callable[[dict[str, Any]], AccessAnswer]
    elapsed: Callable[[], float] = elapsed_seconds
    _answers: FairCache[_Key, tuple[float, AccessAnswer]] = field(default_factory=lambda: FairCache(MAX_REMEMBERED))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def remembered_answer(self, user: RemoteUser, request: MetricRequest | DiscoveryRequest) -> AccessAnswer | None:
        """Returns the answer from the last few seconds, or None if the API server must be asked."""
        with self._lock:
            remembered = self._answers.find_entry(user.sharer, (user, _without_selector(request)))
        if remembered is None or self.elapsed() - remembered[0] >= REMEMBERED_SECONDS:
            return None
        return remembered[1]

    def authorize(self, user: RemoteUser, request: MetricRequest | DiscoveryRequest) -> AccessAnswer:
        """Returns the answer, either remembered or from the API server. Raises any KubeFault if the API server does not
        respond."""
        request = _without_selector(request)
        if (answer := self.remembered_answer(user, request)) is not None:
            return answer
        answer = self.ask(build_access_review(user, request))
        with self._lock:
            self._answers.store_entry(user.sharer, (user, request), (self.elapsed(), answer))
        return answer


def _without_selector(request: MetricRequest | DiscoveryRequest) -> MetricRequest | DiscoveryRequest:
    """Returns a request without its label selector, on which authorization does not depend."""
    if isinstance(request, DiscoveryRequest) or not request.requirements:
        return request
    return MetricRequest(namespace=request.namespace, name=request.name, metric=request.metric)
