"""What people are told of the World decisions rest on: each change once, and each trouble once while it lasts."""

from collections.abc import Mapping
from typing import Protocol

from trimtab.cluster.reason import Unreadable
from trimtab.runtime.log import Logger
from webhook.metrics import Meters
from webhook.world import World

STALE = 200.0
"""Seconds. The API server speaks every minute unasked; of a kind that never changed since its start it does not, such a
stream is given up after 90, and the next one is silent for a minute at the most (measured: 150 in all)."""
PATIENCE = 10.0
"""Seconds until the first lists should have been read."""


class Standing(Protocol):
    """How it goes, as `Live` tells it."""

    @property
    def complete(self) -> bool: ...
    @property
    def waited(self) -> float: ...
    def age(self) -> float | None: ...
    def missing(self) -> tuple[str, ...]: ...
    def troubles(self) -> Mapping[str, str]: ...
    def unreadable(self) -> tuple[Unreadable, ...]: ...


class Herald:
    """Log lines and counts. Used by one thread."""

    def __init__(self, meters: Meters, log: Logger) -> None:
        self._meters, self._log = meters, log
        self._late = self._stale = False
        self._unreadable: tuple[Unreadable, ...] = ()

    def changed(self, before: World, after: World) -> None:
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

    def look(self, standing: Standing) -> None:
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

    def _age(self, standing: Standing) -> None:
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
