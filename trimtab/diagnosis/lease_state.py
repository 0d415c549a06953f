"""Decodes the Lease of a process, and returns whether one of its replicas leads (holds the Lease)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseState:
    """The Lease of a process."""

    holder: str
    renewed_at: datetime | None
    duration_seconds: int


def has_leader(lease: LeaseState | None, now: datetime) -> bool:
    """Returns whether a replica holds the Lease and has renewed it in time."""
    if lease is None or not lease.holder or lease.renewed_at is None:
        return False
    return (now - lease.renewed_at).total_seconds() <= lease.duration_seconds


def decode_lease(document: Mapping[str, Any]) -> LeaseState:
    """Returns the state of a Lease from the API server's JSON."""
    spec = document.get("spec") or {}
    renewed = spec.get("renewTime")
    return LeaseState(
        holder=spec.get("holderIdentity") or "",
        renewed_at=datetime.fromisoformat(renewed) if renewed else None,
        duration_seconds=spec.get("leaseDurationSeconds") or 0,
    )
