"""How an API server is asked: for objects as plain values, for rights, for how it answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import msgspec

from trimtab.command.doctor.seen import Source, Trial
from trimtab.kube import whole
from trimtab.kube.client import Client, segment
from trimtab.kube.errors import Unreachable, refused
from trimtab.kube.exchange import Exchange
from trimtab.kube.kinds import PLACES, collection
from trimtab.kube.listing import pages
from trimtab.kube.objects import parsed
from trimtab.runtime.clock import elapsed

_AT_ONCE = 8
_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
METRICS = "/apis/metrics.k8s.io/v1beta1/pods"


class _Said(msgspec.Struct):
    """A Status, or what else came."""

    message: str = ""


@dataclass(frozen=True, slots=True)
class Asking:
    """Everything raises any KubeFault."""

    client: Client

    def exchange(self, method: str, path: str, query: Any = None, body: Mapping[str, Any] | None = None) -> Exchange:
        deadline = self.client.deadlines.read
        return self.client.exchange(method, path, deadline=deadline, query=query, body=body, doing=f"{method} {path}")

    def one(self, kind: str, name: str, namespace: str = "") -> dict[str, Any] | None:
        """None where there is none."""
        return whole.get(self.client, kind, name, namespace)

    def all(self, kind: str, namespace: str = "") -> Iterator[dict[str, Any]]:
        place = replace(PLACES[kind], namespace=namespace) if namespace else PLACES[kind]
        for page in pages(self.client, place):
            yield from (msgspec.json.decode(raw) for raw in page.items)

    def trial(self, document: Mapping[str, Any], namespace: str = "") -> Trial:
        """Created, and not stored."""
        begun = elapsed()
        path = collection(PLACES[document["kind"]], namespace)
        found = self.exchange("POST", path, {"dryRun": "All"}, document)
        return Trial(
            status=found.status, message=_said(found) if found.status >= 300 else "", warnings=found.warnings,
            seconds=elapsed() - begun,
        )  # fmt: skip

    def allowed(self, reviews: Sequence[Mapping[str, Any]]) -> list[bool]:
        """The answer to each SubjectAccessReview."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(self._allowed, reviews))

    def _allowed(self, review: Mapping[str, Any]) -> bool:
        doing = "create subjectaccessreviews"
        found = parsed(self.client.write("POST", _REVIEWS, review, doing=doing), dict[str, Any], doing)
        return bool((found.get("status") or {}).get("allowed"))

    def usage(self, prometheus: str) -> Source:
        """The metrics API, or the Prometheus of this URL, through the API server."""
        if not prometheus:
            found = self.exchange("GET", METRICS, {"limit": 1})
            _may(found, "list pods.metrics.k8s.io")
            return Source(name="metrics API", status=found.status, said=_said(found), empty=_is_empty(found))
        found = self.exchange("GET", _through(prometheus), {"query": "vector(1)"})
        _may(found, f"reach {prometheus} through the API server (get services/proxy)")
        return Source(name=prometheus, status=found.status, said=_said(found))


def _may(found: Exchange, doing: str) -> None:
    if found.status in (401, 403):
        raise refused(doing, found.status, found.content)


def _through(url: str) -> str:
    """The path by which the API server passes on to a Service. Raises Unreachable where it is none of this cluster."""
    parts = urlsplit(url)
    words = (parts.hostname or "").split(".")
    if len(words) < 2 or words[2:] not in ([], ["svc"], ["svc", "cluster", "local"]):
        raise Unreachable(f"ask {url}: it is no Service of this cluster, so it cannot be asked from here")
    name, namespace = map(segment, words[:2])
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    named = f"https:{name}:{port}" if secure else f"{name}:{port}"
    return f"/api/v1/namespaces/{namespace}/services/{named}/proxy{parts.path.rstrip('/')}/api/v1/query"


def _said(found: Exchange) -> str:
    """In its own words, cut short."""
    try:
        return msgspec.json.decode(found.content, type=_Said).message[:300]
    except (msgspec.DecodeError, UnicodeError):
        return found.content[:200].decode(errors="replace").strip()


def _is_empty(found: Exchange) -> bool:
    if found.status >= 300:
        return False
    return not parsed(found.content, dict[str, Any], "list pods.metrics.k8s.io").get("items")
