"""The policies and facts that decisions read: loaded from files, or kept up to date by watches of the cluster.

`PolicyStateBuilder` applies watch events to a WebhookPolicyState: no thread, no clock, no API server.
`PolicyStateWatcher` runs the watches in threads, and one more thread that builds the state; decisions read its
attribute `world`, which is replaced as a whole, so that nothing here runs on the event loop. Old data is used however
old it is, and its age is reported: a webhook that stops deciding when the API server is slow would be one more failure.
`StateLogger` logs each change once, and each error once while it lasts.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.snapshot import load_snapshot
from trimtab.cluster.timestamps import Seconds
from trimtab.kube.client import Client
from trimtab.kube.informers import ChangeQueue
from trimtab.kube.resources import LIST_SOURCES, ListSource, autoscaler_status, fact_list_sources, sources_by_name
from trimtab.kube.watch_state import ChangeType, WatchEvent
from trimtab.policy import vpa_webhook
from trimtab.policy.cluster_facts import ALL_KINDS, NO_FACTS, OWNERS, ClusterFacts, from_snapshot
from trimtab.policy.load import load_policies
from trimtab.policy.pod_context import AdmissionSettings
from trimtab.policy.podpolicy import Policies
from trimtab.policy.watched_facts import (
    CONFIGURATION,
    COUNTED,
    POLICY,
    SLICE,
    Hold,
    WatchedPolicies,
    load_object,
    projections_by_kind,
)
from trimtab.runtime import clock, files, gunicorn_patches
from trimtab.runtime.clock import elapsed_seconds
from trimtab.runtime.files import InvalidPolicyFiles
from trimtab.runtime.graceful_shutdown import GracefulShutdown
from trimtab.runtime.log import Logger
from trimtab.runtime.settings import Settings
from webhook.metrics import WebhookMetrics


@dataclass(frozen=True, slots=True)
class WebhookPolicyState:
    """The state that decisions read. Replaced as a whole; an unchanged part stays the same object."""

    policies: Policies
    facts: ClusterFacts
    terms: AdmissionSettings
    broken: Mapping[str, tuple[ConfigError, ...]] = field(default_factory=dict)
    """Policies of the cluster whose current document does not load, by name."""


def from_files(settings: Settings) -> WebhookPolicyState:
    """Loads the state that the settings name. Raises UnreadableFiles, or InvalidPolicyFiles with every error.

    For a live cluster it contains no facts and none of its policies yet.
    """
    loaded = load_policies(_policy_contents(settings))
    snapshot = load_snapshot(files.read_files([settings.cluster]) if settings.cluster and not settings.is_live else [])
    mistakes = (*loaded.mistakes, *snapshot.mistakes)
    if mistakes:
        raise InvalidPolicyFiles(mistakes)
    terms = AdmissionSettings(overhead=settings.overhead, paused=settings.paused, own_namespace=settings.namespace)
    if settings.is_live or not settings.cluster:
        # Without a snapshot the cluster is unknown, which is not the same as empty.
        return WebhookPolicyState(loaded.policies, NO_FACTS, terms)
    return WebhookPolicyState(
        loaded.policies, from_snapshot(snapshot.snapshot, own_namespace=settings.namespace), terms
    )


def _policy_contents(settings: Settings) -> list[files.Content]:
    if settings.policies:
        return files.read_files(settings.policies)
    return [] if settings.is_live else files.shipped_policies()


def list_sources(own_namespace: str, *, policies: bool) -> tuple[ListSource, ...]:
    """Returns every list that is watched from the start; never pods. policies: whether the cluster's are among them."""
    facts = fact_list_sources(ALL_KINDS, OWNERS, COUNTED, own_namespace)
    return (*facts, LIST_SOURCES[CONFIGURATION], *([LIST_SOURCES[POLICY]] if policies else []))


def object_projections(own_namespace: str) -> Mapping[str, Hold]:
    """Returns kind → the function that reduces an object of it."""
    return {
        **projections_by_kind(own_namespace),
        CONFIGURATION: vpa_webhook.find_vpa_targets,
        SLICE: vpa_webhook.retain_endpoints,
        POLICY: load_object,
    }


class PolicyStateBuilder:
    """Applies watch events, and returns the current state. For one thread."""

    def __init__(self, base: WebhookPolicyState, *, policies: bool) -> None:
        """`base` has the settings, and the policies if they are not read from the cluster."""
        self._world = base
        self._base = base
        self._watched = WatchedPolicies(base.terms.own_namespace, None if policies else base.policies)

    def apply_event(self, change: WatchEvent[Any]) -> None:
        """Applies the creation, change or deletion of an object."""
        if change.change_type is ChangeType.DELETED:
            self._watched.drop(change.kind, change.key)
        else:
            self._watched.put(change.kind, change.key, change.after)

    @property
    def added_lists(self) -> tuple[ListSource, ...]:
        """Lists that are watched because of other objects: endpoints of the VPA's webhook, Leases of schedulers."""
        return sources_by_name(self._watched.vpa_services, self._watched.scheduler_leases)

    def forget_added_lists(self) -> None:
        """Drops the objects of the added lists, because others are watched from now on."""
        self._watched.forget_added_lists()

    def build_state(self, now: Seconds) -> WebhookPolicyState:
        """Returns the state at this time; the same object as last time if nothing changed."""
        facts = self._watched.build_facts(now=now)
        terms, paused = self._world.terms, self._base.terms.paused or self._watched.is_paused
        if paused is not terms.paused:
            terms = replace(terms, paused=paused)
        state = WebhookPolicyState(self._watched.policies, facts, terms, self._watched.invalid_documents())
        if not (
            self._world.policies is state.policies
            and self._world.facts is state.facts
            and self._world.terms is state.terms
            and self._world.broken is state.broken
        ):
            self._world = state
        return self._world


SETTLE_SECONDS = 0.05
"""Time to wait for changes that arrive together: a rollout is dozens of changes, and should be one new state."""
LOOK_SECONDS = 0.5
"""Time between two calls of the listener's `on_round` while nothing changes."""


class PolicyStateListener(Protocol):
    """Receives changes and errors of the watched state."""

    def on_change(self, before: WebhookPolicyState, after: WebhookPolicyState, /) -> None: ...
    def on_round(self, live: PolicyStateWatcher, /) -> None: ...
    def on_error(self, what: str, error: Exception, /) -> None: ...


class PolicyStateWatcher:
    """Keeps the state up to date from `start` to `stop`, which takes about a second."""

    def __init__(
        self,
        client: Client,
        base: WebhookPolicyState,
        *,
        policies: bool,
        hears: PolicyStateListener,
        autoscalers: Sequence[ListSource] = (),
    ) -> None:
        """policies: whether to watch the cluster's policies as well.
        base: the state until every kind has been listed once.
        autoscalers: the ConfigMaps of the cluster autoscalers' statuses, if they are not the default one."""
        own = base.terms.own_namespace
        self.world = base
        """The current state. Read it once per decision: another thread replaces it at any time."""
        self.complete = False
        """True once everything was listed and published in `world`; it never becomes false again."""
        self._client = client
        self._builder = PolicyStateBuilder(base, policies=policies)
        self._listener = hears
        self._autoscalers = tuple(autoscalers) or (autoscaler_status(),)
        self._changes = ChangeQueue(client, list_sources(own, policies=policies), object_projections(own))
        self._stop = GracefulShutdown()
        self._thread = threading.Thread(target=self._run, name="world", daemon=True)
        self._started = elapsed_seconds()

    def start(self) -> PolicyStateWatcher:
        """Starts the threads, and returns at once."""
        self._changes.start()
        self._thread.start()
        return self

    def stop(self) -> None:
        self._stop.request_stop()
        self._changes.stop()
        self._thread.join(2.0)
        self._client.close()

    def data_age(self) -> float | None:
        """Returns the seconds since the oldest list was known to be current, or None while one was never read."""
        return self._changes.informers.oldest_age()

    @property
    def seconds_since_start(self) -> float:
        """Seconds since the start."""
        return elapsed_seconds() - self._started

    def missing_lists(self) -> tuple[str, ...]:
        """Lists that were never read."""
        return tuple(name for name, state in self._changes.informers.health_by_list().items() if not state.synced)

    def list_errors(self) -> dict[str, str]:
        """Returns the current errors by list."""
        return self._changes.errors_by_list()

    def unreadable_objects(self) -> tuple[Unreadable, ...]:
        """Objects that cannot be decoded: the facts are without them."""
        return self._changes.informers.unreadable_objects()

    def count_problems(self) -> int:
        """Returns the number of objects that cannot be decoded, or whose previous content is used."""
        return len(self.unreadable_objects()) + len(self.world.facts.problems) + len(self.world.broken)

    def _run(self) -> None:
        while not self._stop.is_requested:
            try:
                self._apply_and_publish()
            except Exception as error:  # noqa: BLE001  the thread must survive, so that later changes are applied
                self._listener.on_error("facts", error)
                self._stop.wait_for_stop(LOOK_SECONDS)

    def _apply_and_publish(self) -> None:
        complete = (
            self._changes.informers.is_synced
        )  # read before the changes, so that all listed objects are among them
        for change in self._changes.take_changes(LOOK_SECONDS if self.complete else SETTLE_SECONDS, SETTLE_SECONDS):
            self._apply_change(change)
        # These lists are not waited for: while they cannot be read, what they contain counts as unknown.
        if self._changes.watch_added((*self._autoscalers, *self._builder.added_lists)):
            self._builder.forget_added_lists()
        if complete:
            self._publish()
        self._listener.on_round(self)

    def _apply_change(self, change: WatchEvent[Any]) -> None:
        try:
            self._builder.apply_event(change)
        except Exception as error:  # noqa: BLE001  one unforeseen object must not hide the others
            self._listener.on_error(f"facts: {change.kind} {change.key}", error)

    def _publish(self) -> None:
        before, after = self.world, self._builder.build_state(int(clock.utc_now().timestamp()))
        if after is not before:
            self.world = after
            self._listener.on_change(before, after)
        if not self.complete:
            gunicorn_patches.reduce_memory()
            self.complete = True


STALE_SECONDS = 200.0
"""The age after which facts are reported as stale. A quiet watch gets a bookmark every minute; a watch of a kind that
never changed since the API server's start gets none, is given up after 90 seconds, and its successor is silent for
at most a minute (measured: 150 in all)."""
PATIENCE_SECONDS = 10.0
"""Time after which missing first lists are reported."""


class PolicyStateHealth(Protocol):
    """The condition of the watches; `PolicyStateWatcher` implements it."""

    @property
    def complete(self) -> bool: ...
    @property
    def seconds_since_start(self) -> float: ...
    def data_age(self) -> float | None: ...
    def missing_lists(self) -> tuple[str, ...]: ...
    def list_errors(self) -> Mapping[str, str]: ...
    def unreadable_objects(self) -> tuple[Unreadable, ...]: ...


class StateLogger:
    """Logs and counts changes and errors of the state. For one thread."""

    def __init__(self, meters: WebhookMetrics, log: Logger) -> None:
        self._meters, self._log = meters, log
        self._is_late = self._is_stale = False
        self._unreadable: tuple[Unreadable, ...] = ()

    def on_change(self, before: WebhookPolicyState, after: WebhookPolicyState) -> None:
        """Logs what changed with a new state."""
        if after.policies is not before.policies:
            self._log.info("policies in force", policies=[policy.name for policy in after.policies.all])
        for name, mistakes in after.broken.items():
            if before.broken.get(name) is not mistakes:
                why = [mistake.sentence for mistake in mistakes]
                self._log.warning("policy rejected, the previous version stays in force", policy=name, why=why)
        for problem in after.facts.problems:
            if problem not in before.facts.problems:
                self._log.warning(
                    "an object cannot be read, and its previous version is used",
                    where=problem.where,
                    why=problem.problem,
                )
        if after.terms.paused is not before.terms.paused:
            self._log.warning(
                "Trimtab is paused, so no pod is changed" if after.terms.paused else "changes are resumed"
            )
        if after.facts.vpa_acts is not before.facts.vpa_acts:
            self._log.info("the VPA's webhook", acts=after.facts.vpa_acts)

    def on_round(self, health: PolicyStateHealth) -> None:
        """Logs new undecodable objects, and missing or stale lists. Called about every second."""
        before, self._unreadable = self._unreadable, health.unreadable_objects()
        for problem in self._unreadable:
            if problem not in before:
                self._log.warning(
                    "an object cannot be read, and decisions ignore it", where=problem.where, why=problem.problem
                )
        if health.complete:
            age = health.data_age() or 0.0
            if age > STALE_SECONDS and not self._is_stale:
                self._log.warning(
                    "the webhook's view of the cluster is outdated and still used",
                    age=round(age),
                    troubles=health.list_errors(),
                )
            elif age <= STALE_SECONDS and self._is_stale:
                self._log.info("the webhook's view of the cluster is current again", age=round(age))
            self._is_stale = age > STALE_SECONDS
        elif health.seconds_since_start > PATIENCE_SECONDS and not self._is_late:
            self._is_late = True
            self._log.warning("not ready", missing=health.missing_lists(), troubles=health.list_errors())

    def on_error(self, what: str, error: Exception) -> None:
        """Logs and counts an internal error; the previous state stays in force."""
        self._meters.count_failure("facts")
        self._log.error("facts", what=what, error=f"{type(error).__name__}: {error}")
