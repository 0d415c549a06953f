"""Which rights did an account use? From the API server's audit log, which has every request of our own accounts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Used:
    """One right that was asked for, and what became of it. `namespace` and `name` are empty where it asked for all."""

    account: str
    verb: str
    group: str
    resource: str
    """ "pods", "pods/eviction" """
    namespace: str
    name: str
    status: int


def used(log: Path, namespace: str, since: int = 0, until: int | None = None) -> Iterator[Used]:
    """Every request of this namespace's accounts that was answered, once for each kind of it; between these bytes."""
    beginning = f"system:serviceaccount:{namespace}:"
    usages: set[Used] = set()
    with log.open("rb") as lines:
        lines.seek(since)
        for line in iter(lines.readline, b""):
            if until is not None and lines.tell() > until:
                return
            if beginning.encode() not in line or not line.endswith(b"\n"):
                continue
            event = json.loads(line)
            user = str(event["user"]["username"])
            target = event.get("objectRef")
            if target is None or not user.startswith(beginning) or event["stage"] == "RequestReceived":
                continue
            sub = target.get("subresource")
            usage = Used(
                account=user.removeprefix(beginning),
                verb=event["verb"],
                group=target.get("apiGroup", ""),
                resource=f"{target['resource']}/{sub}" if sub else target["resource"],
                namespace=target.get("namespace", ""),
                name=target.get("name", ""),
                status=event.get("responseStatus", {}).get("code", 0),
            )
            if usage not in usages:
                usages.add(usage)
                yield usage
