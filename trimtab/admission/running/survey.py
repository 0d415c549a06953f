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
class Survey:
    """Remembers from step to step. Not for two threads."""

    most: int = 1000
    """Decisions in one step; a decision takes some 100 to 300 µs."""
    _known: dict[Alike, tuple[Standing, Facts]] = field(default_factory=dict)
    _rests_on: tuple[Policies, Terms] | None = None

    def look(self, pods: Iterable[Held], world: World) -> Seen:
        """One step over all pods there are."""
        groups = _groups(pods)
        if self._rests_on != (world.policies, world.terms):
            self._known = {alike: (found, _NOTHING) for alike, (found, _) in self._known.items()}
            self._rests_on = (world.policies, world.terms)
        self._known = {alike: found for alike, found in self._known.items() if alike in groups}
        waiting = self._waiting(groups, world.facts)
        for alike in waiting[: self.most]:
            self._known[alike] = (stand(alike, world.policies, world.facts, world.terms), world.facts)
        decided = min(len(waiting), self.most)
        standings = {alike: found for alike, (found, _) in self._known.items()}
        return Seen(groups=groups, standings=standings, decided=decided, behind=len(waiting) - decided)

    def standing(self, alike: Alike) -> Standing | None:
        """As it was found last; None where nobody has come to it, or its pods are gone."""
        found = self._known.get(alike)
        return found[0] if found else None

    def _waiting(self, groups: Mapping[Alike, object], facts: Facts) -> list[Alike]:
        """Those nobody has come to first."""
        new = [alike for alike in groups if alike not in self._known]
        changed = [alike for alike, (_, before) in self._known.items() if before is not facts]
        return new + changed


_NOTHING = Facts(known=frozenset())
"""Facts that nothing was decided with: who holds them is decided about again."""


def _groups(pods: Iterable[Held]) -> dict[Alike, tuple[Held, ...]]:
    found: dict[Alike, list[Held]] = {}
    for pod in pods:
        if pod.running:
            found.setdefault(pod.alike, []).append(pod)
    return {alike: tuple(same) for alike, same in found.items()}
