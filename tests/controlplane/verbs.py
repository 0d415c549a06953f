"""What can be done to the objects of a cluster, seen from one namespace: dicts in, dicts out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tests.controlplane import objects
from tests.controlplane.api import Api, ApiError, Unreachable
from tests.controlplane.objects import Object

T = TypeVar("T")
Objects = list[Object]  # inside the class `list` is a verb
Names = list[str]
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
PATIENCE = 3.0
"""A busy machine may take so many times as long as an idle one; who has its answer waits no longer for it."""


class Verbs:
    """Remembers what it made outside of its namespace; a login of its own, by kubeconfig."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self.kubeconfig = kubeconfig
        self.namespace = namespace
        self.api = Api(kubeconfig)
        self._outside: list[tuple[str, str]] = []

    def apply(self, given: str | Object | Sequence[Object]) -> Objects:
        """Server-side apply of YAML or dicts, as stored. What names no namespace goes to ours."""
        return [self._send("PATCH", item) for item in objects.documents(given)]

    def create(self, given: str | Object, **query: Any) -> Object:
        """One object by POST, as stored."""
        [item] = objects.documents(given)
        return self._send("POST", item, **query)

    def get(self, kind: str, name: str, namespace: str | None = None) -> Object:
        return self._ask("GET", kind, name, namespace)

    def list(
        self, kind: str, namespace: str | None = None, *, selector: str | None = None, everywhere: bool = False
    ) -> Objects:
        """Those of our namespace unless told otherwise. `selector` is a label selector."""
        actual_kind = self.api.kind(kind)
        inside = None if everywhere else namespace or self.namespace
        return list(self.api.items(actual_kind, inside, labelSelector=selector))

    def delete(self, kind: str, name: str, namespace: str | None = None, *, grace: int | None = None) -> None:
        """What is gone already is fine."""
        try:
            self._ask("DELETE", kind, name, namespace, gracePeriodSeconds=grace)
        except ApiError as error:
            if error.status != 404:
                raise

    def patch(
        self, kind: str, name: str, changes: Object, namespace: str | None = None, sub: str = "", **query: Any
    ) -> Object:
        """A merge patch, of a subresource such as `status` where `sub` names it."""
        path = self.api.path(self.api.kind(kind), namespace or self.namespace, name, sub)
        return self._object("PATCH", path, changes, content_type=MERGE, **query)

    def evict(self, pod: str, namespace: str | None = None) -> None:
        """By the eviction API: a budget that is spent answers 429."""
        path = self.api.path(self.api.kind("Pod"), namespace or self.namespace, pod, "eviction")
        self._object("POST", path, {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}})

    def eventually(self, fn: Callable[[], T], within: float = 30.0, what: str = "", every: float = 0.1) -> T:
        """Calls until the answer is true, and returns it. Errors and assertions are "not yet".

        `within`: seconds on an idle machine.
        """
        deadline = time.monotonic() + PATIENCE * within
        while True:
            last: object
            try:
                last = answer = fn()
                if answer:
                    return answer
            except (AssertionError, ApiError, Unreachable) as error:
                last = error
            if time.monotonic() > deadline:
                self._explain()
                raise AssertionError(f"not within {PATIENCE:g} times {within:g} s: {what or fn}; last: {last!r}")
            time.sleep(every)

    def _explain(self) -> None:
        """Raises instead, where a better reason for waiting in vain is known."""

    def _send(self, method: str, item: Object, **query: Any) -> Object:
        kind = self.api.kind(item["kind"], item["apiVersion"])
        namespace = item["metadata"].get("namespace") or self.namespace
        if method == "POST":
            stored = self._object("POST", self.api.path(kind, namespace), item, **query)
        else:
            path = self.api.path(kind, namespace, item["metadata"]["name"])
            how = {"fieldManager": "e2e", "force": "true", **query}
            stored = self._object("PATCH", path, item, content_type=APPLY, **how)
        objects = (item["kind"], stored["metadata"]["name"])
        if not kind.namespaced and objects not in self._outside:
            self._outside.append(objects)
        return stored

    def _ask(self, method: str, kind: str, name: str, namespace: str | None, **query: Any) -> Object:
        path = self.api.path(self.api.kind(kind), namespace or self.namespace, name)
        return self._object(method, path, **query)

    def _object(self, method: str, path: str, body: Any = None, **more: Any) -> Object:
        answer: Object = self.api.request(method, path, body, **more)
        return answer
