"""What do decisions rest on, and where does it come from: files, or the cluster itself?

A World made of what was seen in the cluster, change by change. No thread, no clock, no API server.

The cluster, followed: watches in threads, one more thread that makes a World of what they tell.

Decisions read `world`, one attribute, replaced as a whole; nothing of this runs on the event loop. What is held is
used however old it is, and its age is told: a webhook that stops deciding when the API server is slow would be the
next failure.

What people are told of the World decisions rest on: each change once, and each trouble once while it lasts.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.recommendation import LABEL as RECOMMENDATIONS
from trimtab.cluster.snapshot import load
from trimtab.kube.client import Client
from trimtab.kube.informers import ChangeQueue
from trimtab.kube.resources import PLACES, ListSource, autoscaler_status
from trimtab.kube.watch_state import ChangeType, WatchEvent
from trimtab.policy import vpa_webhook
from trimtab.policy.cluster_facts import EVERYTHING, NOTHING_KNOWN, ClusterFacts, from_snapshot
from trimtab.policy.facts_cache import FactsCache
from trimtab.policy.load import load_policies
from trimtab.policy.pod_context import AdmissionSettings
from trimtab.policy.podpolicy import Policies
from trimtab.policy.policy_store import PolicyStore, load_object
from trimtab.policy.retained_facts import COUNTED, OWNERS, Hold, holds
from trimtab.policy.vpa_webhook import Endpoints, Service, WebhookTarget
from trimtab.runtime import files, gunicorn_patches
from trimtab.runtime.clock import elapsed
from trimtab.runtime.files import RuntimeFault
from trimtab.runtime.graceful_shutdown import GracefulShutdown
from trimtab.runtime.log import Logger
from trimtab.runtime.settings import Settings
from webhook.metrics import WebhookMetrics


class InvalidPolicyFiles(RuntimeFault):
    """Policies or a snapshot with mistakes: all of them, together."""

    def __init__(self, mistakes: tuple[ConfigError, ...]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = mistakes


@dataclass(frozen=True, slots=True)
class WebhookPolicyState:
    """Replaced as a whole; a part that does not differ stays the very same object."""

    policies: Policies
    facts: ClusterFacts
    terms: AdmissionSettings
    broken: Mapping[str, tuple[ConfigError, ...]] = field(default_factory=dict)
    """Policies of the cluster that do not load as they stand there now, by name."""


def from_files(settings: Settings) -> WebhookPolicyState:
    """As the settings name them. Raises UnreadableFiles or UnsoundFiles with every mistake.

    Of a live cluster nothing is known yet, and none of its policies is in force.
    """
    loaded = load_policies(_policies(settings))
    snapshot = load(files.read([settings.cluster]) if settings.cluster and not settings.live else [])
    mistakes = (*loaded.mistakes, *snapshot.mistakes)
    if mistakes:
        raise InvalidPolicyFiles(mistakes)
    terms = AdmissionSettings(overhead=settings.overhead, paused=settings.paused, own_namespace=settings.namespace)
    if settings.live or not settings.cluster:
        # Without a snapshot nothing is known of the cluster, which is not the same as an empty one.
        return WebhookPolicyState(loaded.policies, NOTHING_KNOWN, terms)
    return WebhookPolicyState(
        loaded.policies, from_snapshot(snapshot.snapshot, own_namespace=settings.namespace), terms
    )


def _policies(settings: Settings) -> list[files.Content]:
    if settings.policies:
        return files.read(settings.policies)
    return [] if settings.live else files.shipped()


Key = tuple[str, str]

CONFIGURATION, SLICE, POLICY = "MutatingWebhookConfiguration", "EndpointSlice", "PodPolicy"


def sources(own_namespace: str, *, policies: bool) -> tuple[ListSource, ...]:
    """Every list that is watched from the start, with the cluster's policies or without. No pods.

    Of ReplicaSets and CronJobs only the metadata is asked for, of ConfigMaps only our own recommendations.
    """
    whole = [PLACES[kind] for kind in sorted(EVERYTHING)] + [PLACES[CONFIGURATION]]
    owners = [PLACES[kind] if kind in COUNTED else _slim(PLACES[kind]) for kind in OWNERS]
    shards = ListSource(
        kind="ConfigMap", group_version="v1", plural="configmaps", namespace=own_namespace,
        labels=f"{RECOMMENDATIONS}=v1",
    )  # fmt: skip
    return (*whole, *owners, shards, *([PLACES[POLICY]] if policies else []))


def _slim(source: ListSource) -> ListSource:
    return replace(source, slim=True)


def slices(service: Service) -> ListSource:
    """The endpoints of one Service."""
    namespace, name = service
    return replace(PLACES[SLICE], namespace=namespace, labels=f"{vpa_webhook.SERVICE_LABEL}={name}")


def held(own_namespace: str) -> Mapping[str, Hold]:
    """Kind → what is held of its objects."""
    return {
        **holds(own_namespace),
        CONFIGURATION: vpa_webhook.called,
        SLICE: vpa_webhook.endpoints,
        POLICY: load_object,
    }


class PolicyStateBuilder:
    """Told of changes, it gives the World as it is now. Not for two threads."""

    def __init__(self, base: WebhookPolicyState, *, policies: bool) -> None:
        """`base` has the terms, and the policies where they do not come from the cluster."""
        self._world = base
        self._base = base
        self._from_cluster = policies
        self._gathering = FactsCache(base.terms.own_namespace)
        self._standing = PolicyStore()
        self._configurations: dict[Key, tuple[WebhookTarget, ...]] = {}
        self._slices: dict[Key, Endpoints] = {}

    def hear(self, change: WatchEvent[Any]) -> None:
        """Something came, changed or went."""
        gone = change.what is ChangeType.DELETED
        if change.kind == POLICY:
            self._policy(change.key[1], change.after, gone)
        elif change.kind == CONFIGURATION:
            _keep(self._configurations, change, gone)
        elif change.kind == SLICE:
            _keep(self._slices, change, gone)
        elif gone:
            self._gathering.drop(change.kind, change.key)
        else:
            self._gathering.put(change.kind, change.key, change.after)

    def _policy(self, name: str, after: Any, gone: bool) -> None:
        if gone:
            self._standing.drop(name)
        else:
            self._standing.put(name, after)

    @property
    def services(self) -> frozenset[Service]:
        """Whose endpoints must be watched to know whether the VPA's webhook can act."""
        return vpa_webhook.services(self._configurations)

    def forget_slices(self) -> None:
        """Others are watched from now on."""
        self._slices.clear()

    def world(self) -> WebhookPolicyState:
        """Everything as it is now; the same object as last time where nothing differs."""
        facts = self._gathering.facts(vpa_reach=vpa_webhook.reach(self._configurations, self._slices))
        terms, paused = self._world.terms, self._base.terms.paused or self._gathering.paused
        if paused is not terms.paused:
            terms = replace(terms, paused=paused)
        policies = self._standing.policies() if self._from_cluster else self._base.policies
        found = WebhookPolicyState(policies, facts, terms, self._standing.broken())
        if not _same(self._world, found):
            self._world = found
        return self._world


def _keep(into: dict[Key, Any], change: WatchEvent[Any], gone: bool) -> None:
    if gone:
        into.pop(change.key, None)
    else:
        into[change.key] = change.after


def _same(a: WebhookPolicyState, b: WebhookPolicyState) -> bool:
    return a.policies is b.policies and a.facts is b.facts and a.terms is b.terms and a.broken is b.broken


SETTLE = 0.05
"""Seconds to wait for what comes together: a rollout is dozens of changes, and one new World."""
LOOK = 0.5
"""Seconds between looks at how things stand, when nothing changes."""


class PolicyStateListener(Protocol):
    """Who is told."""

    def changed(self, before: WebhookPolicyState, after: WebhookPolicyState, /) -> None: ...
    def look(self, live: PolicyStateWatcher, /) -> None: ...
    def failed(self, what: str, error: Exception, /) -> None: ...


class PolicyStateWatcher:
    """Begin it with `start`; `stop` ends it within a second or so."""

    def __init__(
        self,
        client: Client,
        base: WebhookPolicyState,
        *,
        policies: bool,
        hears: PolicyStateListener,
        autoscaler: ListSource | None = None,
    ) -> None:
        """`policies`: they come from the cluster, too. `base` is in force until everything was listed once.
        `autoscaler`: where the cluster autoscaler writes its status, if not where it does by default."""
        own = base.terms.own_namespace
        self.world = base
        """Read it once per decision: it is replaced at any moment."""
        self.complete = False
        """Was everything listed at least once, and made a World of? It stays true."""
        self._client = client
        self._seen = PolicyStateBuilder(base, policies=policies)
        self._hears = hears
        self._autoscaler = autoscaler or autoscaler_status()
        self._feed = ChangeQueue(client, sources(own, policies=policies), held(own))
        self._stop = GracefulShutdown()
        self._thread = threading.Thread(target=self._run, name="world", daemon=True)
        self._begun = elapsed()

    def start(self) -> PolicyStateWatcher:
        """Returns at once."""
        self._feed.start()
        self._thread.start()
        return self

    def stop(self) -> None:
        self._stop.begin()
        self._feed.stop()
        self._thread.join(2.0)
        self._client.close()

    def age(self) -> float | None:
        """Seconds since the oldest list was known to be true; None while one was never read."""
        return self._feed.watch.age()

    @property
    def waited(self) -> float:
        """Seconds since the start."""
        return elapsed() - self._begun

    def missing(self) -> tuple[str, ...]:
        """Lists never read so far."""
        return tuple(name for name, state in self._feed.watch.states().items() if not state.synced)

    def troubles(self) -> dict[str, str]:
        """What goes wrong now, by list."""
        return self._feed.troubles()

    def unreadable(self) -> tuple[Unreadable, ...]:
        """Objects that are there and cannot be decoded: facts are without them."""
        return self._feed.watch.unreadable()

    def problems(self) -> int:
        """Objects that make no sense as they stand: those, and what keeps what it said before."""
        return len(self.unreadable()) + len(self.world.facts.problems) + len(self.world.broken)

    def _run(self) -> None:
        while not self._stop.begun:
            try:
                self._step()
            except Exception as error:  # noqa: BLE001  what is in force must stay in force, and be mended by what comes
                self._hears.failed("facts", error)
                self._stop.wait(LOOK)

    def _step(self) -> None:
        complete = self._feed.watch.synced  # before the changes are taken: whatever was listed is among them
        for change in self._feed.taken(LOOK if self.complete else SETTLE, SETTLE):
            self._hear(change)
        # Nobody waits for these: where they cannot be read, what they tell is not known.
        if self._feed.follow((self._autoscaler, *(slices(service) for service in sorted(self._seen.services)))):
            self._seen.forget_slices()
        if complete:
            self._publish()
        self._hears.look(self)

    def _hear(self, change: WatchEvent[Any]) -> None:
        try:
            self._seen.hear(change)
        except Exception as error:  # noqa: BLE001  one object nobody foresaw must not hide the others
            self._hears.failed(f"facts: {change.kind} {change.key}", error)

    def _publish(self) -> None:
        before, after = self.world, self._seen.world()
        if after is not before:
            self.world = after
            self._hears.changed(before, after)
        if not self.complete:
            gunicorn_patches.settle()
            self.complete = True


STALE = 200.0
"""Seconds. The API server speaks every minute unasked; of a kind that never changed since its start it does not, such a
stream is given up after 90, and the next one is silent for a minute at the most (measured: 150 in all)."""
PATIENCE = 10.0
"""Seconds until the first lists should have been read."""


class PolicyStateHealth(Protocol):
    """How it goes, as `PolicyStateWatcher` tells it."""

    @property
    def complete(self) -> bool: ...
    @property
    def waited(self) -> float: ...
    def age(self) -> float | None: ...
    def missing(self) -> tuple[str, ...]: ...
    def troubles(self) -> Mapping[str, str]: ...
    def unreadable(self) -> tuple[Unreadable, ...]: ...


class StateLogger:
    """Log lines and counts. Used by one thread."""

    def __init__(self, meters: WebhookMetrics, log: Logger) -> None:
        self._meters, self._log = meters, log
        self._late = self._stale = False
        self._unreadable: tuple[Unreadable, ...] = ()

    def changed(self, before: WebhookPolicyState, after: WebhookPolicyState) -> None:
        """A new World is in force."""
        if after.policies is not before.policies:
            self._log.info("policies in force", policies=[policy.name for policy in after.policies.all])
        for name, mistakes in after.broken.items():
            if before.broken.get(name) is not mistakes:
                why = [mistake.sentence for mistake in mistakes]
                self._log.warning("policy refused, what it was before stays in force", policy=name, why=why)
        for problem in after.facts.problems:
            if problem not in before.facts.problems:
                self._log.warning("unreadable, what it said before is used", where=problem.where, why=problem.problem)
        if after.terms.paused is not before.terms.paused:
            self._log.warning("all changes are paused" if after.terms.paused else "changes go on")
        if after.facts.vpa_acts is not before.facts.vpa_acts:
            self._log.info("the VPA's webhook", acts=after.facts.vpa_acts)

    def look(self, standing: PolicyStateHealth) -> None:
        """Called every second or so."""
        before, self._unreadable = self._unreadable, standing.unreadable()
        for problem in self._unreadable:
            if problem not in before:
                self._log.warning("unreadable, decided without it", where=problem.where, why=problem.problem)
        if standing.complete:
            self._age(standing)
        elif standing.waited > PATIENCE and not self._late:
            self._late = True
            self._log.warning("not ready", missing=standing.missing(), troubles=standing.troubles())

    def _age(self, standing: PolicyStateHealth) -> None:
        age = standing.age() or 0.0
        if age > STALE and not self._stale:
            self._log.warning("facts are stale and used on", age=round(age), troubles=standing.troubles())
        elif age <= STALE and self._stale:
            self._log.info("facts are fresh again", age=round(age))
        self._stale = age > STALE

    def failed(self, what: str, error: Exception) -> None:
        """A mistake of ours; what was in force stays."""
        self._meters.failed("facts")
        self._log.error("facts", what=what, error=f"{type(error).__name__}: {error}")
