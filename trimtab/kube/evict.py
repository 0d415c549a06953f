"""An eviction, and what can become of it.

Measured on Kubernetes 1.36: success is 201 with a Status; a spent budget is 429 without Retry-After, a budget the
controller has not seen yet 429 with it; two budgets over one pod are 500; another pod under that name is 409.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import msgspec

from trimtab.kube.errors import Conflict, NotFound, RequestRefused, TooManyRequests
from trimtab.kube.objects import Writer, parsed
from trimtab.kube.resources import PLACES, one

_TWO = "more than one PodDisruptionBudget"
"""pkg/registry/core/pod/storage/eviction.go; the answer has no reason and no details."""


_DENIALS = (400, 403, 422)
"""A webhook's no (400 unless it says otherwise), or a namespace that is being deleted (403): about this pod alone."""


class EvictionStatus(StrEnum):
    EVICTED = "evicted"
    """It is being ended, or would be in a dry run."""
    GONE = "gone"
    """There was no such pod any more."""
    ANOTHER = "another-pod"
    """A pod of that name is there, but not the one that was meant."""
    NO_ROOM = "no-room"
    """Its budget is spent; nobody says until when."""
    WAIT = "wait"
    """Ask again after `retry_after`: a budget's numbers are being worked out, or the server has too much to do."""
    DENIED = "denied"
    """Somebody in front of the API says no to this very eviction; it may be asked for again."""
    TWO_BUDGETS = "two-budgets"
    """The eviction API cannot evict it at all, now or later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionOutcome:
    """What became of it, in the server's words where it refused."""

    became: EvictionStatus
    message: str = ""
    retry_after: float | None = None
    """Seconds; only with WAIT."""

    @property
    def done(self) -> bool:
        """Is the pod that was meant gone, or going?"""
        return self.became in (EvictionStatus.EVICTED, EvictionStatus.GONE, EvictionStatus.ANOTHER)


def evict(writer: Writer, namespace: str, name: str, uid: str, *, grace: int | None = None) -> EvictionOutcome:
    """Evict exactly this pod. `grace` overrides its seconds to end. Raises KubeFault for what no eviction answers.

    The pod is looked at first: of a pod with another uid the API server thinks for ten seconds before it says so
    (it takes the precondition for a conflict to be tried again; measured on 1.36). The precondition stays all the
    same: should the pod be replaced in between, this ends in Unreachable, and nobody's pod is evicted by mistake.
    """
    there = _uid(writer, namespace, name)
    if there != uid:
        return EvictionOutcome(became=EvictionStatus.ANOTHER if there else EvictionStatus.GONE)
    options: dict[str, object] = {"preconditions": {"uid": uid}}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    if writer.dry_run:
        options["dryRun"] = ["All"]
    meta = {"name": name, "namespace": namespace}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta, "deleteOptions": options}
    path = one(PLACES["Pod"], namespace, name, "eviction")
    try:
        writer.write("POST", path, body, doing=f"evict Pod {namespace}/{name}")
    except NotFound as error:
        return EvictionOutcome(became=EvictionStatus.GONE, message=error.message)
    except Conflict as error:
        return _conflict(writer, namespace, name, uid, error)
    except TooManyRequests as error:
        return _not_now(error)
    except RequestRefused as error:
        if error.status == 500 and _TWO in error.message:
            return EvictionOutcome(became=EvictionStatus.TWO_BUDGETS, message=error.message)
        if error.status in _DENIALS:
            return EvictionOutcome(became=EvictionStatus.DENIED, message=error.message)
        raise
    return EvictionOutcome(became=EvictionStatus.EVICTED)


def _uid(writer: Writer, namespace: str, name: str) -> str:
    """Of the pod of this name; empty where there is none."""
    doing = f"evict Pod {namespace}/{name}"
    deadline = writer.client.deadlines.write
    try:
        found = writer.client.request("GET", one(PLACES["Pod"], namespace, name), deadline=deadline, doing=doing)
    except NotFound:
        return ""
    pod: _Pod = parsed(found, _Pod, doing)
    return pod.metadata.uid


class _Meta(msgspec.Struct):
    uid: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


def _conflict(writer: Writer, namespace: str, name: str, uid: str, error: Conflict) -> EvictionOutcome:
    """Another pod by now, or this very pod changed at the same moment: then it is still there."""
    there = _uid(writer, namespace, name)
    if there == uid:
        return EvictionOutcome(became=EvictionStatus.WAIT, message=error.message, retry_after=1.0)
    return EvictionOutcome(became=EvictionStatus.ANOTHER if there else EvictionStatus.GONE, message=error.message)


def _not_now(error: TooManyRequests) -> EvictionOutcome:
    """Only Retry-After tells "wait" from "no room": the reason is TooManyRequests in both."""
    words = "; ".join(cause.message for cause in error.causes) or error.message
    if error.retry_after is None:
        return EvictionOutcome(became=EvictionStatus.NO_ROOM, message=words)
    return EvictionOutcome(became=EvictionStatus.WAIT, message=words, retry_after=error.retry_after)
