"""Every write goes through here: fenced, rehearsed on request, under our name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.kube.client import JSON, Client, Query

Fence = Callable[[str], None]
"""Raises NotLeading where the write (told in words) must not begin."""


def unfenced(doing: str) -> None:
    """For what any replica may write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Who writes, and whether it counts."""

    client: Client
    manager: str = "trimtab"
    """Field manager: whose fields these are."""
    fence: Fence = unfenced
    """Asked before each write: a Lease alone does not stop a leader that was asleep."""
    dry_run: bool = False
    """The API server does everything, admission included, and stores nothing."""

    def write(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any],
        *,
        doing: str,
        content_type: str = JSON,
        query: Query | None = None,
    ) -> bytes:
        """The answer's bytes. Raises any KubeFault."""
        self.fence(doing)
        given: dict[str, str | int | None] = {"dryRun": "All" if self.dry_run else None, **(query or {})}
        if method != "DELETE":
            given["fieldManager"] = self.manager
        return self.client.write(method, path, body, content_type=content_type, query=given, doing=doing)
