"""How many pods with a policy's change were hit, and how many without, over the same length of time?

A pod that is gone counts as it was at its end: a rollout that replaces every pod does not erase what it is compared
with. One that was changed by an earlier version of the policy counts among those from before.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from trimtab.admission.harm.brake import Compared, Count, HarmTerms
from trimtab.admission.running.incident import Trouble
from trimtab.admission.running.standing import Standing
from trimtab.admission.running.submitted import Alike, Held
from trimtab.admission.running.why import Moment

_SIZES = (".requests.", ".limits.", "runtimeClassName", "overhead")
_PLACES = ("nodeSelector", "nodeAffinity", "topologySpread", "priorityClassName")
MAY_CAUSE: dict[Trouble, tuple[str, ...]] = {
    Trouble.OOM_KILLED: (".requests.memory", ".limits.memory", "runtimeClassName", "overhead"),
    Trouble.EVICTED: (*_SIZES, "priorityClassName"),
    Trouble.UNSCHEDULABLE: (*_SIZES, *_PLACES),
}
"""Parts of the names of fields whose change can cause it."""


class Side(StrEnum):
    BEFORE = "before"
    AFTER = "after"


Counts = dict[Trouble, Compared]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A policy that is in force, as far as its harm is looked for."""

    name: str
    since: Moment | None
    """When its spec was last written; None: not known, and every pod that carries its change counts."""


def side(policy: Watched, pod: Held, standing: Standing | None) -> Side | None:
    """Where the pod stands to the policy; None: elsewhere, or not known."""
    carried = pod.alike.marker is not None and policy.name in pod.alike.marker.by
    if carried and (policy.since is None or pod.created is None or pod.created >= policy.since):
        return Side.AFTER
    return Side.BEFORE if carried or (standing is not None and policy.name in standing.meant) else None


def hits(pod: Held, end: Moment, terms: HarmTerms) -> frozenset[Trouble]:
    """What befell it within the window before `end`: now, or its own end."""
    if not pod.incidents:
        return _NONE
    return frozenset(
        found.trouble
        for found in pod.incidents
        if (found.trouble is Trouble.UNSCHEDULABLE and end - found.at >= terms.unschedulable_after)
        or (found.trouble is not Trouble.UNSCHEDULABLE and end - found.at <= terms.window)
    )


_NONE: frozenset[Trouble] = frozenset()


def may_cause(alike: Alike, policy: str, trouble: Trouble) -> bool:
    """Did the policy change anything of these pods that can cause it?"""
    fields = alike.marker.by.get(policy, {}) if alike.marker else {}
    return any(part in name for name in fields for part in MAY_CAUSE[trouble])


@dataclass(slots=True)
class Ledger:
    """Pods that are gone, counted by the hour. Not for two threads."""

    terms: HarmTerms = field(default_factory=HarmTerms)
    _restored: dict[tuple[str, Moment | None], dict[Trouble, Count]] = field(default_factory=dict)
    _hours: dict[int, dict[tuple[str, Moment | None, Side, Trouble], Count]] = field(default_factory=dict)

    def gone(self, pod: Held, standing: Standing | None, policies: Iterable[Watched], now: Moment) -> None:
        """It was there until now."""
        hit = hits(pod, now, self.terms)
        for policy in policies:
            where = side(policy, pod, standing)
            for trouble in Trouble if where is not None else ():
                if where is Side.BEFORE or may_cause(pod.alike, policy.name, trouble):
                    self._add(policy, where, trouble, Count(1, trouble in hit), now)

    def restore(self, policy: Watched, before: Mapping[Trouble, Count]) -> None:
        """What an earlier life of ours knew of the time before this version; used while nobody knows of more pods."""
        if before:
            self._restored[policy.name, policy.since] = dict(before)

    def forget(self, now: Moment) -> None:
        """What is older than the terms' memory."""
        first = _hour(now - self.terms.memory)
        self._hours = {hour: found for hour, found in self._hours.items() if hour >= first}

    def counted(self, policy: Watched, where: Side, trouble: Trouble, now: Moment) -> Count:
        """AFTER within the window, BEFORE within the memory; what an earlier version changed is from before."""
        first = _hour(now - (self.terms.window if where is Side.AFTER else self.terms.memory))
        total = Count()
        for hour, found in self._hours.items():
            for (name, since, side_then, what), count in found.items() if hour >= first else ():
                side_now = side_then if since == policy.since else Side.BEFORE
                if (name, side_now, what) == (policy.name, where, trouble):
                    total += count
        return total

    def known_before(self, policy: Watched, trouble: Trouble, standing: Count, now: Moment) -> Count:
        """Pods that stand, those that are gone; or what was restored, where that is more."""
        seen = standing + self.counted(policy, Side.BEFORE, trouble, now)
        restored = self._restored.get((policy.name, policy.since), {}).get(trouble, Count())
        return restored if restored.pods > seen.pods else seen

    def _add(self, policy: Watched, where: Side | None, trouble: Trouble, count: Count, now: Moment) -> None:
        assert where is not None
        hour, key = self._hours.setdefault(_hour(now), {}), (policy.name, policy.since, where, trouble)
        hour[key] = hour.get(key, Count()) + count


def _hour(moment: Moment) -> int:
    return int(moment // 3600)


def count(
    pods: Iterable[Held], standings: Mapping[Alike, Standing], policies: Iterable[Watched], ledger: Ledger, now: Moment
) -> dict[str, Counts]:
    """Policy → trouble → pods on every side, those that are gone included."""
    groups = _relevant(pods, now, ledger.terms)
    return {policy.name: _to(policy, groups, standings, ledger, now) for policy in policies}


_Groups = dict[Alike, list[tuple[Held, frozenset[Trouble]]]]


def _relevant(pods: Iterable[Held], now: Moment, terms: HarmTerms) -> _Groups:
    """Pods that run, or were made or hit within the window."""
    found: _Groups = {}
    for pod in pods:
        hit = hits(pod, now, terms)
        if pod.running or hit or (pod.created is not None and now - pod.created <= terms.window):
            found.setdefault(pod.alike, []).append((pod, hit))
    return found


def _to(policy: Watched, groups: _Groups, standings: Mapping[Alike, Standing], ledger: Ledger, now: Moment) -> Counts:
    total = {trouble: Compared() for trouble in Trouble}
    for alike, pods in groups.items():
        standing = standings.get(alike)
        for where, some in _by_side(policy, pods, standing).items():
            for trouble in Trouble:
                _note(total, trouble, where, alike, policy.name, _counted(some, trouble, where, now, ledger.terms))
    return {trouble: _with_gone(policy, trouble, found, ledger, now) for trouble, found in total.items()}


def _by_side(
    policy: Watched, pods: list[tuple[Held, frozenset[Trouble]]], standing: Standing | None
) -> dict[Side | None, list[tuple[Held, frozenset[Trouble]]]]:
    found: dict[Side | None, list[tuple[Held, frozenset[Trouble]]]] = {}
    for pod in pods:
        found.setdefault(side(policy, pod[0], standing), []).append(pod)
    return found


def _counted(
    pods: list[tuple[Held, frozenset[Trouble]]], trouble: Trouble, where: Side | None, now: Moment, terms: HarmTerms
) -> Count:
    """Elsewhere only pods as young as those blamed can tell whether nodes have room."""
    if where is None and trouble is Trouble.UNSCHEDULABLE:
        pods = [(pod, hit) for pod, hit in pods if pod.created is not None and now - pod.created <= terms.window]
    return Count(len(pods), sum(trouble in hit for _, hit in pods))


def _note(total: Counts, trouble: Trouble, where: Side | None, alike: Alike, policy: str, counted: Count) -> None:
    found = total[trouble]
    if where is Side.BEFORE:
        total[trouble] = Compared(before=found.before + counted, after=found.after, elsewhere=found.elsewhere)
    elif where is None:
        total[trouble] = Compared(before=found.before, after=found.after, elsewhere=found.elsewhere + counted)
    elif may_cause(alike, policy, trouble):
        total[trouble] = Compared(before=found.before, after=found.after + counted, elsewhere=found.elsewhere)


def _with_gone(policy: Watched, trouble: Trouble, found: Compared, ledger: Ledger, now: Moment) -> Compared:
    return Compared(
        before=ledger.known_before(policy, trouble, found.before, now),
        after=found.after + ledger.counted(policy, Side.AFTER, trouble, now),
        elsewhere=found.elsewhere,
    )
