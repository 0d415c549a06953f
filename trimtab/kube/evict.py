"""Evicts a pod, and distinguishes the possible outcomes.

Measured on Kubernetes 1.36: success is 201 with a Status; an exhausted PodDisruptionBudget is 429 without Retry-After;
a budget that its controller has not processed yet is 429 with Retry-After; two budgets for one pod are 500; another pod
with the same name is 409.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import msgspec

from trimtab.kube.errors import Conflict, NotFound, RequestRefused, TooManyRequests
from trimtab.kube.objects import Writer, decode_as
from trimtab.kube.resources import LIST_SOURCES, object_path

_TWO_BUDGETS = "more than one PodDisruptionBudget"
"""A part of the API server's message if a pod has two budgets (pkg/registry/core/pod/storage/eviction.go). The response
has no reason or details."""


_DENIALS = (400, 403, 422)
"""Status codes that concern this pod alone: a webhook denies the eviction (400 unless the webhook chooses another
code), or the namespace is being deleted (403)."""


class EvictionStatus(StrEnum):
    EVICTED = "evicted"
    """The pod is terminating, or would be if this were not a dry run."""
    GONE = "gone"
    """The pod no longer exists."""
    ANOTHER = "another-pod"
    """A pod of that name exists, but it is not the same pod."""
    NO_ROOM = "no-room"
    """The pod's disruption budget is exhausted; the server does not say for how long."""
    WAIT = "wait"
    """Try again after `retry_after`: the status of a budget is being computed, or the server has too many requests."""
    DENIED = "denied"
    """An admission webhook denies this eviction, or the namespace is being deleted; a later attempt may succeed."""
    TWO_BUDGETS = "two-budgets"
    """Several budgets select the pod, so the eviction API cannot evict it, now or later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionOutcome:
    """The outcome of an eviction, with the server's message if the eviction was refused."""

    eviction_status: EvictionStatus
    message: str = ""
    retry_after: float | None = None
    """The number of seconds to wait; only for the status WAIT."""

    @property
    def is_done(self) -> bool:
        """Whether the pod no longer exists or is terminating."""
        return self.eviction_status in (EvictionStatus.EVICTED, EvictionStatus.GONE, EvictionStatus.ANOTHER)


def evict(writer: Writer, namespace: str, name: str, uid: str) -> EvictionOutcome:
    """Evicts exactly this pod, with its own termination grace period, and returns the outcome. Raises KubeFault for
    errors that are not an outcome of an eviction. An admission policy refuses another grace period to this account.

    The pod is read first, because for a pod with another uid the API server takes ten seconds to respond (it treats the
    precondition as a conflict, which it retries; measured on 1.36). The precondition is sent nevertheless: if the pod
    is replaced after it was read, the request ends with Unreachable, and no other pod is evicted by mistake.
    """
    current_uid = _uid(writer, namespace, name)
    if current_uid != uid:
        return EvictionOutcome(eviction_status=EvictionStatus.ANOTHER if current_uid else EvictionStatus.GONE)
    options: dict[str, object] = {"preconditions": {"uid": uid}}
    if writer.dry_run:
        options["dryRun"] = ["All"]
    meta = {"name": name, "namespace": namespace}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta, "deleteOptions": options}
    path = object_path(LIST_SOURCES["Pod"], namespace, name, "eviction")
    try:
        writer.write("POST", path, body, doing=f"evict Pod {namespace}/{name}")
    except NotFound as error:
        return EvictionOutcome(eviction_status=EvictionStatus.GONE, message=error.message)
    except Conflict as error:
        return _conflict(writer, namespace, name, uid, error)
    except TooManyRequests as error:
        # The outcome of a response with status 429. Only Retry-After distinguishes WAIT from NO_ROOM, because the
        # reason is TooManyRequests in both cases.
        words = "; ".join(cause.message for cause in error.causes) or error.message
        if error.retry_after is None:
            return EvictionOutcome(eviction_status=EvictionStatus.NO_ROOM, message=words)
        return EvictionOutcome(eviction_status=EvictionStatus.WAIT, message=words, retry_after=error.retry_after)
    except RequestRefused as error:
        # The API server has no status of its own for this case: only the message tells it.
        if error.status == 500 and _TWO_BUDGETS in error.message:
            return EvictionOutcome(eviction_status=EvictionStatus.TWO_BUDGETS, message=error.message)
        if error.status in _DENIALS:
            return EvictionOutcome(eviction_status=EvictionStatus.DENIED, message=error.message)
        raise
    return EvictionOutcome(eviction_status=EvictionStatus.EVICTED)


def _uid(writer: Writer, namespace: str, name: str) -> str:
    """Returns the uid of the pod of this name, or an empty string if there is none."""
    doing = f"evict Pod {namespace}/{name}"
    deadline = writer.client.deadlines.write
    try:
        body = writer.client.request(
            "GET", object_path(LIST_SOURCES["Pod"], namespace, name), deadline=deadline, doing=doing
        )
    except NotFound:
        return ""
    pod: _Pod = decode_as(body, _Pod, doing)
    return pod.metadata.uid


class _Meta(msgspec.Struct):
    uid: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


def _conflict(writer: Writer, namespace: str, name: str, uid: str, error: Conflict) -> EvictionOutcome:
    """Returns the outcome of a conflict: either there is another pod by now, or this pod was changed at the same moment
    and still exists."""
    current_uid = _uid(writer, namespace, name)
    if current_uid == uid:
        # The same pod, changed while the eviction wrote its status: the next attempt can succeed.
        return EvictionOutcome(eviction_status=EvictionStatus.WAIT, message=error.message, retry_after=1.0)
    return EvictionOutcome(
        eviction_status=EvictionStatus.ANOTHER if current_uid else EvictionStatus.GONE, message=error.message
    )
