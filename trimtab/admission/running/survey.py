"""All running pods, looked at in bounded steps.

Pods alike are decided about once, and again only when a policy or what the decision rests on has changed. A step
decides about so many at the most; the rest keep what was found before, or wait, and are counted as behind.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trimtab.admission.running.standing import Standing, stand
from trimtab.admission.running.submitted import Alike, Held
from trimtab.policy.document import Policies
from trimtab.policy.facts import Facts
from trimtab.policy.reads import Reads, Since, watched
from trimtab.policy.subject import DEFAULT_TERMS, Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What decisions rest on."""

    policies: Policies
    facts: Facts
    terms: Terms = DEFAULT_TERMS


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one step came to."""

    groups: Mapping[Alike, tuple[Held, ...]]
    """Every pod that has not finished, with those it is like."""
    standings: Mapping[Alike, Standing]
    """Of all groups but those that nobody has come to yet."""
    decided: int = 0
    """Groups decided about in this step."""
    behind: int = 0
    """Groups left for the next step: unknown yet, or known as they stood before the last change."""

    @property
    def pods(self) -> int:
        return sum(map(len, self.groups.values()))


@dataclass(slots=True)
class _Known:
    standing: Standing
    reads: Reads | None
    """What the decision read of the facts; None: it is not to be relied on any more."""
    facts: Facts
    """The newest facts of which it would have read the same."""


@dataclass(slots=True)
class Survey:
    """Remembers from step to step. Not for two threads."""

    most: int = 1000
    """Decisions in one step; a decision takes some 100 to 300 µs."""
    _known: dict[Alike, _Known] = field(default_factory=dict)
    _rests_on: tuple[Policies, Terms] | None = None

    def look(self, pods: Iterable[Held], world: World) -> Seen:
        """One step over all pods there are."""
        groups = _groups(pods)
        self._known = {alike: found for alike, found in self._known.items() if alike in groups}
        if self._rests_on != (world.policies, world.terms):
            self._doubt()
            self._rests_on = (world.policies, world.terms)
        waiting = self._waiting(groups, world.facts)
        for alike in waiting[: self.most]:
            self._known[alike] = _decided(alike, world)
        decided = min(len(waiting), self.most)
        standings = {alike: found.standing for alike, found in self._known.items()}
        return Seen(groups=groups, standings=standings, decided=decided, behind=len(waiting) - decided)

    def standing(self, alike: Alike) -> Standing | None:
        """As it was found last; None where nobody has come to it, or its pods are gone."""
        found = self._known.get(alike)
        return found.standing if found else None

    def _doubt(self) -> None:
        """Every decision has to be made again."""
        for found in self._known.values():
            found.reads = None

    def _waiting(self, groups: Mapping[Alike, object], facts: Facts) -> list[Alike]:
        """Those nobody has come to first."""
        new = [alike for alike in groups if alike not in self._known]
        changed = [alike for alike, found in self._known.items() if not _holds(found, facts)]
        return new + changed


def _holds(found: _Known, facts: Facts) -> bool:
    """Would the decision read of these facts what it read then?"""
    if found.reads is None:
        return False
    if found.facts is not facts:
        if found.reads.since(facts) is Since.OTHER:
            return False
        found.facts = facts
    return True


def _decided(alike: Alike, world: World) -> _Known:
    noted, reads = watched(world.facts)
    return _Known(stand(alike, world.policies, noted, world.terms), reads, world.facts)


def _groups(pods: Iterable[Held]) -> dict[Alike, tuple[Held, ...]]:
    found: dict[Alike, list[Held]] = {}
    for pod in pods:
        if pod.running:
            found.setdefault(pod.alike, []).append(pod)
    return {alike: tuple(same) for alike, same in found.items()}
