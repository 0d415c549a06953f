"""Policies and facts, built object by object from what watches report, for the webhook, the watchdog and the compactor.
It has no threads, no clock and no connection to the API server: a process decides what it watches and when it builds
facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.timestamps import Seconds
from trimtab.policy import vpa_webhook
from trimtab.policy.cluster_facts import ALL_KINDS, ClusterFacts
from trimtab.policy.facts_cache import FactsCache
from trimtab.policy.podpolicy import Policies
from trimtab.policy.policy_store import PolicyStore
from trimtab.policy.vpa_webhook import Endpoints, Service, WebhookReach, WebhookTarget

POLICY, CONFIGURATION, SLICE, LEASE = "PodPolicy", "MutatingWebhookConfiguration", "EndpointSlice", "Lease"
Key = tuple[str, str]
"""(namespace, name) of an object."""


class WatchedPolicies:
    """The policies, the cluster facts, and the reach of the VPA's webhook. Only one thread may use it."""

    def __init__(self, own_namespace: str, fixed: Policies | None = None) -> None:
        """`fixed` are policies from files, which are used instead of those in the cluster."""
        self._fixed = fixed
        self._store = PolicyStore()
        self._facts_cache = FactsCache(own_namespace)
        self._targets: dict[Key, tuple[WebhookTarget, ...]] = {}
        self._slices: dict[Key, Endpoints] = {}
        self._leases: dict[Key, Seconds | None] = {}
        """Lease → the time until which it is held."""

    def put(self, kind: str, key: Key, retained: Any) -> None:
        """Adds or replaces an object. `retained` is the reduced form for its kind, which `load_object`,
        `find_vpa_targets`, `retain_endpoints` or a function of `retained_facts` returns."""
        if kind == POLICY:
            self._store.put(key[1], retained)
        elif kind == CONFIGURATION:
            self._targets[key] = retained
        elif kind == SLICE:
            self._slices[key] = retained
        elif kind == LEASE:
            self._leases[key] = retained
        else:
            self._facts_cache.put(kind, key, retained)

    def drop(self, kind: str, key: Key) -> None:
        """Removes an object, if it is there."""
        if kind == POLICY:
            self._store.drop(key[1])
        elif kind == CONFIGURATION:
            self._targets.pop(key, None)
        elif kind == SLICE:
            self._slices.pop(key, None)
        elif kind == LEASE:
            self._leases.pop(key, None)
        else:
            self._facts_cache.drop(kind, key)

    @property
    def policies(self) -> Policies:
        """The policies in effect; the same object as last time if nothing differs."""
        return self._fixed if self._fixed is not None else self._store.current_policies()

    def invalid_documents(self) -> Mapping[str, tuple[ConfigError, ...]]:
        """Returns policy name → the mistakes in its document in the cluster."""
        return self._store.invalid_documents()

    @property
    def is_paused(self) -> bool:
        """Whether Trimtab's own namespace says that all changes must stop."""
        return self._facts_cache.is_paused

    @property
    def vpa_services(self) -> frozenset[Service]:
        """The Services whose endpoints must be watched to know whether the VPA's webhook can act."""
        return vpa_webhook.target_services(self._targets)

    @property
    def scheduler_leases(self) -> frozenset[Key]:
        """The Leases that must be watched to know whether the schedulers that policies set are running, as (namespace,
        name)."""
        return self.policies.compute_once(scheduler_leases)

    def forget_added_lists(self) -> None:
        """Removes all EndpointSlices and Leases, because a different set of them is watched from now on."""
        self._slices.clear()
        self._leases.clear()

    def build_facts(
        self,
        vpa_reach: tuple[WebhookReach, ...] | None = None,
        now: Seconds | None = None,
        listed_kinds: frozenset[str] = ALL_KINDS,
    ) -> ClusterFacts:
        """Returns the facts from everything received so far; the same object as last time if nothing differs.

        `vpa_reach`: the pods for which the VPA's webhook is assumed to act; None: as its configurations and endpoints
        say. `now`: the time, which decides which Leases are fresh; None: no Leases are watched. `listed_kinds`: the
        kinds of which all objects are known.
        """
        if vpa_reach is None:
            vpa_reach = vpa_webhook.find_webhook_reach(self._targets, self._slices)
        return self._facts_cache.build_facts(listed_kinds, vpa_reach=vpa_reach, fresh_leases=self._fresh_leases(now))

    def _fresh_leases(self, now: Seconds | None) -> frozenset[str] | None:
        if now is None:
            return None
        held = self._leases.items()
        return frozenset("/".join(key) for key, until in held if until is not None and now <= until)


def scheduler_leases(policies: Policies) -> frozenset[Key]:
    """Returns the Leases of the schedulers that policies set, as (namespace, name)."""
    chosen = (policy.spec.actions.scheduler_name for policy in policies.all if policy.spec.enabled)
    leases = (choice.watched_lease for choice in chosen if choice is not None)
    pairs = (lease.partition("/") for lease in leases if lease is not None)
    return frozenset((namespace, name) for namespace, _, name in pairs)
