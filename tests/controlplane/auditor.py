"""Who did what? The API server's own audit log, read beside whatever is tested."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

READS = ("get", "list", "watch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write that was answered, refused ones too."""

    at: str  # when it came, RFC 3339 with microseconds
    user: str
    groups: tuple[str, ...]
    agent: str
    verb: str  # create, update, patch, delete, deletecollection
    resource: str  # "pods", "pods/eviction"
    namespace: str | None
    name: str | None
    status: int
    dry_run: bool
    asked: Any = field(repr=False)  # the request's body, None where the policy keeps it out
    annotations: dict[str, str] = field(repr=False)  # the decision's reason, patches of webhooks

    @property
    def allowed(self) -> bool:
        return self.status < 400


class Auditor:
    """Writes since it was made; none is missed while the API server restarts."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._offset = log.stat().st_size if log.exists() else 0
        self._seen: list[Write] = []

    def writes(
        self,
        *,
        user: str | None = None,
        verb: str | None = None,
        resource: str | None = None,
        namespace: str | None = None,
        name: str | None = None,
    ) -> list[Write]:
        """In the order they were answered; only those that agree with everything given."""
        self._read_until_quiet()
        expected = {"user": user, "verb": verb, "resource": resource, "namespace": namespace, "name": name}
        values = {key: value for key, value in expected.items() if value is not None}
        return [write for write in self._seen if all(getattr(write, key) == value for key, value in values.items())]

    def _read_until_quiet(self) -> None:
        """A write may be answered milliseconds before its line is whole. A busy log is read for a second."""
        deadline = time.monotonic() + 1.0
        while True:
            objects = list(self._new())
            self._seen.extend(objects)
            time.sleep(0.02)
            quiet = not objects and self._offset == self._log.stat().st_size
            if quiet or time.monotonic() > deadline:
                return

    def _new(self) -> Iterator[Write]:
        if not self._log.exists():
            return
        with self._log.open("rb") as log:
            log.seek(self._offset)
            for line in log:
                if not line.endswith(b"\n"):  # being written
                    return
                self._offset += len(line)
                event = json.loads(line)
                written = event["verb"] not in READS and event["stage"] in ("ResponseComplete", "Panic")
                if "objectRef" in event and written:
                    yield _write(event)


def _write(event: dict[str, Any]) -> Write:
    target = event["objectRef"]
    who = event.get("impersonatedUser") or event["user"]
    sub = target.get("subresource")
    return Write(
        at=event["requestReceivedTimestamp"],
        user=who["username"],
        groups=tuple(who.get("groups", ())),
        agent=event.get("userAgent", ""),
        verb=event["verb"],
        resource=f"{target['resource']}/{sub}" if sub else target["resource"],
        namespace=target.get("namespace"),
        name=target.get("name"),
        status=event.get("responseStatus", {}).get("code", 0),
        dry_run="dryRun=All" in event["requestURI"],
        asked=event.get("requestObject"),
        annotations=event.get("annotations", {}),
    )
