"""The object whose fields the test of every field changes: how it is made, written, compared and removed."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.e2e.adversary.identities import thief
from tests.e2e.adversary.served_fields import WRITTEN_BY_THE_SERVER, Object, Path, Schema, ServedKind, Variant
from tests.e2e.installed import Installed
from trimtab.installation.permitted_changes import OwnEntries
from trimtab.installation.write_policy import CREATE, WritePolicy
from trimtab.machines.expander_map import MAP_NAME

FINALIZER = "adversary.example.com/stays"
OWN_EVENT = {"watchdog": "trimtab.dev/watchdog", "compactor": "trimtab.dev/compactor"}
KINDS = {
    "mutatingwebhookconfigurations": "MutatingWebhookConfiguration",
    "validatingwebhookconfigurations": "ValidatingWebhookConfiguration",
    "secrets": "Secret",
    "podpolicies": "PodPolicy",
    "leases": "Lease",
    "events": "Event",
    "configmaps": "ConfigMap",
    "poolstatuses": "PoolStatus",
    "drainorders": "DrainOrder",
    "verticalpodautoscalers": "VerticalPodAutoscaler",
    "horizontalpodautoscalers": "HorizontalPodAutoscaler",
    "nodes": "Node",
    "apiservices": "APIService",
    "pods/resize": "Pod",
    "deployments/scale": "Scale",
    "pods/eviction": "Eviction",
}
GROUPS = {"pods/eviction": "policy", "deployments/scale": "autoscaling"}
"""The group of the kind that a subresource takes. Its version is v1."""
Result = TypeVar("Result")
SET_AT_CREATION = ("uid", "creationTimestamp")


@dataclass(frozen=True)
class Attempted:
    """One kind of write of one policy."""

    policy: WritePolicy
    resource: str
    operation: str

    def __str__(self) -> str:
        return f"{self.policy.name}-{self.resource.replace('/', '-')}-{self.operation.lower()}"

    @property
    def plural(self) -> str:
        return self.resource.removesuffix("/status")


@dataclass
class World:
    """The installation, the namespace of a team, an administrator, and the accounts with more rights."""

    here: Installed
    admin: Cluster

    @property
    def own(self) -> str:
        return self.here.values.namespace

    @property
    def team(self) -> str:
        return self.here.cluster.namespace


class ChangedMeanwhile(Exception):
    """A controller changed the object after it was read: to write what was read would undo that."""


class Stored:
    """The object whose fields are tried, and how it is written."""

    def __init__(self, world: World, attempted: Attempted) -> None:
        self.world, self.attempted, self.policy = world, attempted, attempted.policy
        self.thief = thief(world.here, attempted.policy.process)
        self._group, self._version = attempted.policy.group, attempted.policy.version
        if self._version == "*":
            self._version = "v1alpha1"
        self._made: Object = {}
        self._read: Object = {}
        """The object as it was read last."""
        self._pod: Object = {}
        """The pod that is evicted."""

    # ── what the API server serves ───────────────────────────────────────────────────────────────────

    def served_kind(self) -> ServedKind:
        plural = self.attempted.plural
        path = f"/openapi/v3/{self._prefix()[1:]}"
        group = GROUPS.get(plural, self._group)
        return ServedKind.of(self.world.admin.api.request("GET", path), group, self._version, KINDS[plural])

    # ── the object ───────────────────────────────────────────────────────────────────────────────────

    def prepared(self, served: ServedKind) -> _Prepared:
        return _Prepared(self, served)

    def make(self, served: ServedKind) -> None:
        """Store the object, with as many fields as the API server takes."""
        self._made = self._smallest()
        if self.attempted.plural == "pods/eviction":
            pod = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": self._name()},
                "spec": {"containers": [{"name": "app", "image": "app:1"}]},
            }
            self._pod = self.world.admin.create(pod)
        if self.attempted.operation == CREATE:
            return
        admin = self.world.admin
        if "metadata" in self._made and self._is_ours():
            path = self._path()
            self._made = admin.api.request("GET", path)
        else:
            admin.api.request("POST", self._collection(), self._made)
        uid = admin.get("Namespace", "default")["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": uid}
        metadata = {
            "labels": {"a": "b"},
            "annotations": {"a": "b"},
            "finalizers": [FINALIZER],
            "ownerReferences": [owner],
        }
        self._put(admin, self._parent(), lambda result: _merged(result, {"metadata": metadata}))
        if self.attempted.plural != "pods/resize":
            self._fill(served)

    def _fill(self, served: ServedKind) -> None:
        for path, schema in served.leaves():
            if path[0] not in ("metadata", "apiVersion", "kind", "immutable"):
                until_nobody_interferes(partial(self._fill_leaf, served, path, schema))

    def _fill_leaf(self, served: ServedKind, path: Path, schema: Schema) -> None:
        for variant in served.variants(self.base(), path, schema):
            if variant.how == "add" and not isinstance(self.attempt(self.world.admin, variant), str):
                self.attempt(self.world.admin, variant, dry_run=False)
                return

    def remove(self) -> None:
        """Take the object away again; one of the installation loses what was added to its metadata."""
        if self._pod:
            self.world.admin.delete("Pod", self._name(), grace=0)
        if self.attempted.operation == CREATE:
            return
        admin, parent = self.world.admin, self._parent()
        try:
            self._put(
                admin,
                parent,
                lambda result: _merged(result, {"metadata": {"finalizers": None, "ownerReferences": None}}),
            )
            if self._is_ours():
                self._put(
                    admin,
                    parent,
                    lambda result: {
                        **self._made,
                        "metadata": {
                            **self._made["metadata"],
                            "resourceVersion": result["metadata"]["resourceVersion"],
                        },
                    },
                )
            else:
                admin.api.request("DELETE", parent, {"gracePeriodSeconds": 0})
        except ApiError as error:
            if error.status != 404:
                raise

    def _is_ours(self) -> bool:
        return self.attempted.plural in ("secrets", "mutatingwebhookconfigurations", "validatingwebhookconfigurations")

    def _smallest(self) -> Object:
        plural, policy = self.attempted.plural, self.policy
        if self._is_ours():
            return {"metadata": {"name": policy.names[0]}}
        namespace = self._namespace()
        meta: Object = {"name": self._name(), **({"namespace": namespace} if namespace else {})}
        kind = {"deployments/scale": "Deployment", "pods/resize": "Pod"}.get(plural, KINDS[plural])
        group_version = f"{self._group}/{self._version}" if self._group else self._version
        manifest: Object = {"apiVersion": group_version, "kind": kind, "metadata": meta}
        container = {
            "name": "app",
            "image": "app:1",
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
        }
        labels = {"app": "adversary"}
        if plural == "pods/eviction":
            manifest |= {"apiVersion": "policy/v1", "kind": "Eviction"}
        more: dict[str, Object] = {
            "leases": {"spec": {"holderIdentity": "one"}},
            "configmaps": {"data": {"text": "one"}},
            "podpolicies": {
                "spec": {
                    "actions": {"requests": {"cpu": {"from": "policy", "otherwise": "50m"}}},
                    "match": {"namespaces": {"include": ["adversary"]}},
                }
            },
            "poolstatuses": {"pool": "one"},
            "drainorders": {"spec": {"by": "one", "nodes": ["one"]}},
            "verticalpodautoscalers": {
                "spec": {"recommenders": [{"name": "trimtab"}], "targetRef": {"kind": "Deployment", "name": "web"}}
            },
            "horizontalpodautoscalers": {
                "spec": {
                    "minReplicas": 1,
                    "maxReplicas": 3,
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                }
            },
            "nodes": {"spec": {"taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}]}},
            "events": {
                "eventTime": "2026-01-01T00:00:00.000000Z",
                "action": "Act",
                "reason": "One",
                "type": "Normal",
                "reportingController": OWN_EVENT.get(policy.process, ""),
                "reportingInstance": "one",
                "note": "One.",
                "regarding": {
                    "kind": "Namespace",
                    "name": self.world.team,
                    "namespace": self.world.team,
                    "apiVersion": "v1",
                },
            },
            "pods/resize": {
                "spec": {
                    "containers": [container],
                    "initContainers": [{**container, "name": "side", "restartPolicy": "Always"}],
                }
            },
            "deployments/scale": {
                "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
                }
            },
            "apiservices": {
                "spec": {
                    "group": "custom.metrics.k8s.io",
                    "version": "v1beta2",
                    "versionPriority": 200,
                    "groupPriorityMinimum": 100,
                    "service": {"name": "adversary", "namespace": self.world.own, "port": 443},
                }
            },
        }
        return {**manifest, **more.get(plural, {})}

    def base(self) -> Object:
        """The object as it is stored, or as it would be created."""
        if self.attempted.plural == "pods/eviction":
            return {**self._made, "deleteOptions": {"preconditions": {"uid": self._pod["metadata"]["uid"]}}}
        if self.attempted.operation == CREATE:
            return copy.deepcopy(self._made)
        self._read = self.world.admin.api.request("GET", self._path())
        return self._read

    # ── writing it ───────────────────────────────────────────────────────────────────────────────────

    def attempt(self, who: Cluster, variant: Variant, *, dry_run: bool = True) -> Object | str:
        """The object as the API server would store it, or why it refuses the write. Raises ChangedMeanwhile if the
        variant is of an object that is no longer stored so."""
        document, refusal = variant.document, ""
        for _ in range(20):
            try:
                answer: Object = who.api.request(
                    "POST" if self.attempted.operation == CREATE else "PUT",
                    self._collection() if self.attempted.operation == CREATE else self._path(),
                    document,
                    dryRun="All" if dry_run else None,
                )
                return answer
            except ApiError as error:
                refusal = str(error)
                if error.status != 409 or self.attempted.operation == CREATE or variant.path == ("metadata", "uid"):
                    return refusal
                stored = self.world.admin.api.request("GET", self._path())
                if self.content(stored) != self.content(self._read):
                    raise ChangedMeanwhile(refusal) from None
                document = _merged(document, {"metadata": {"resourceVersion": stored["metadata"]["resourceVersion"]}})
        return refusal

    def content(self, document: Object) -> Object:
        """What counts as a change of the object."""
        ignored = (*WRITTEN_BY_THE_SERVER, *(SET_AT_CREATION if self.attempted.operation == CREATE else ()))
        metadata = {name: value for name, value in document.get("metadata", {}).items() if name not in ignored}
        return {**document, "metadata": metadata}

    def leaves_unchanged(self, answer: Object, unchanged: Object) -> bool:
        """Whether the write that the API server accepted changes nothing."""
        return self.attempted.plural != "pods/eviction" and self.content(answer) == unchanged

    def may_change(self, path: Path) -> bool:
        """Whether the policy names this field, or one above it."""
        creates = self.attempted.operation == CREATE
        paths = (self.policy.may_set or self.policy.may_change) if creates else self.policy.may_change
        return any(
            len(path) >= len(named)
            and all(
                not isinstance(segment, OwnEntries)
                and (segment == head or (not isinstance(segment, str) and head == 0))
                for segment, head in zip(named, path, strict=False)
            )
            for named in paths
        )

    def _put(self, who: Cluster, path: str, change: Callable[[Object], Object]) -> None:
        def put() -> bool:
            try:
                who.api.request("PUT", path, change(who.api.request("GET", path)))
            except ApiError as error:
                if error.status != 409:
                    raise
                return False
            return True

        who.eventually(put, what=f"{path} changed")

    def _name(self) -> str:
        names = {
            "trimtab-compactor-configmaps": "trimtab-state-adversary",
            "trimtab-recommender-parameters": "trimtab-requests",
            "trimtab-recommender-configmaps": "trimtab-recommendations-901",
            "trimtab-recommender-priorities": MAP_NAME,
            "trimtab-metrics-api-cabundle": "v1beta2.custom.metrics.k8s.io",
        }
        named = self.policy.names[0] if self.policy.names else "adversary"
        return names.get(self.policy.name, named)

    def _namespace(self) -> str:
        if not self.policy.is_namespaced:
            return ""
        elsewhere = ("events", "pods/eviction", "pods/resize", "deployments/scale")
        is_elsewhere = self.attempted.plural in elsewhere or self.policy.subject in ("parameters", "priorities")
        return self.world.team if is_elsewhere else self.world.own

    def _prefix(self) -> str:
        return f"/apis/{self._group}/{self._version}" if self._group else f"/api/{self._version}"

    def _collection(self) -> str:
        plural, _, sub = self.attempted.plural.partition("/")
        inside = f"/namespaces/{self._namespace()}" if self._namespace() else ""
        return f"{self._prefix()}{inside}/{plural}" + (f"/{self._name()}/{sub}" if sub == "eviction" else "")

    def _parent(self) -> str:
        """The path of the object without a subresource."""
        return f"{self._collection()}/{self._name()}"

    def _path(self) -> str:
        sub = self.attempted.resource.partition("/")[2]
        return f"{self._parent()}/{sub}" if sub else self._parent()


class _Prepared:
    def __init__(self, stored: Stored, served: ServedKind) -> None:
        self._stored, self._served = stored, served

    def __enter__(self) -> Stored:
        self._stored.make(self._served)
        return self._stored

    def __exit__(self, *_: object) -> None:
        self._stored.remove()


def until_nobody_interferes(act: Callable[[], Result]) -> Result:
    """What `act` returns, once no controller changes the object while it acts."""
    for _ in range(10):
        with contextlib.suppress(ChangedMeanwhile):
            return act()
    raise AssertionError("a controller changes the object again and again")


def _merged(document: Any, more: Any) -> Any:
    """As in a merge patch: None removes a field."""
    if not isinstance(more, dict):
        return more
    merged = dict(document if isinstance(document, dict) else {})
    for name, value in more.items():
        merged.pop(name, None) if value is None else merged.update({name: _merged(merged.get(name), value)})
    return merged
