"""Reads whether a compactor leads (holds its Lease); if none does, since when, and the state of its Deployment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.cluster.api.core import Lease, LeaseSpec
from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds, format_age, format_timestamp, parse_timestamp
from trimtab.compactor.settings import ACCOUNT
from trimtab.inputs.reasons import NO_COMPACTOR
from trimtab.kube.client import Client
from trimtab.kube.errors import KubeFault, NotFound
from trimtab.kube.objects import decode_as, get_plain
from trimtab.kube.resources import LIST_SOURCES, object_path

MAX_CLOCK_SKEW_SECONDS = 60
"""The number of seconds after its expiry for which a Lease still counts as held.

The replica writes the time of each renewal by its own clock, which may differ from this machine's."""


@dataclass(frozen=True, slots=True)
class Leadership:
    """The replica that leads, or the reason why none does."""

    leader: str = ""
    problem: Reason | None = None


def read_leadership(client: Client, namespace: str, now: Seconds) -> Leadership:
    """Read the compactor's Lease, and if no replica holds it, the Deployment. Raises KubeFault if the Lease cannot be
    read."""
    doing = f"read Lease {namespace}/{ACCOUNT}"
    try:
        content = client.get(object_path(LIST_SOURCES["Lease"], namespace, ACCOUNT), doing=doing)
    except NotFound:
        sentence = f"there is no Lease {namespace}/{ACCOUNT}, so no compactor has run in this namespace"
        return Leadership(problem=NO_COMPACTOR(f"{sentence}; {_describe_deployment(client, namespace)}"))
    lease: Lease = decode_as(content, Lease, doing)
    sentence = find_lapse(lease.spec, now)
    if not sentence:
        return Leadership(lease.spec.holder_identity or "")
    return Leadership(problem=NO_COMPACTOR(f"{sentence}; {_describe_deployment(client, namespace)}"))


def find_lapse(lease: LeaseSpec, now: Seconds) -> str:
    """Returns a text that says why no replica holds the Lease, and since when; an empty string if one holds it."""
    renewed = parse_timestamp(lease.renew_time)
    when = "" if renewed is None else f" at {format_timestamp(renewed)}, {format_age(now - renewed)} ago"
    if not lease.holder_identity:
        return (
            f"no replica of the compactor holds the Lease; the last holder renewed it{when}"
            if when
            else "no replica of the compactor holds the Lease"
        )
    duration = lease.lease_duration_seconds or 0
    if renewed is None:
        return f"{lease.holder_identity} has never renewed the Lease"
    if now - renewed > duration + MAX_CLOCK_SKEW_SECONDS:
        return f"{lease.holder_identity} last renewed the Lease{when}, but the Lease expires after {duration} s"
    return ""


def _describe_deployment(client: Client, namespace: str) -> str:
    try:
        return describe_replicas(get_plain(client, "Deployment", ACCOUNT, namespace), namespace, ACCOUNT)
    except KubeFault as error:
        return f"the compactor's Deployment cannot be read: {error}"


def describe_replicas(deployment: Mapping[str, Any] | None, namespace: str, name: str) -> str:
    """Returns how many replicas of the Deployment are ready as text, with the command that shows more."""
    if deployment is None:
        return f"there is no Deployment {namespace}/{name} (`trimtab install --apply` creates it)"
    # A Deployment without `replicas` has one (the API's default).
    wanted = (deployment.get("spec") or {}).get("replicas", 1)
    ready = (deployment.get("status") or {}).get("readyReplicas", 0)
    if wanted == 0:
        scale = f"kubectl -n {namespace} scale deployment {name} --replicas=1"
        return f"the compactor's Deployment {name} is scaled to 0 replicas (to start one: `{scale}`)"
    command = "logs deploy/" + name if ready else "describe pods -l app.kubernetes.io/component=compactor"
    return (
        f"{ready} of {wanted} replicas of the compactor's Deployment {name} are ready (for the cause: `kubectl "
        f"-n {namespace} {command}`)"
    )
