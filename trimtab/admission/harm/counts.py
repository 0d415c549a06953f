"""How many pods with a policy's change were hit, and how many without, over the same length of time?

A pod that is gone counts as it was at its end: a rollout that replaces every pod does not erase what it is compared
with. One that was changed by an earlier version of the policy counts among those from before.
"""

from collections import Counter
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
    groups = _groups(pods, now, ledger.terms)
    return {policy.name: _to(policy, groups, standings, ledger, now) for policy in policies}


_Hit = tuple[Held, frozenset[Trouble]]


@dataclass(slots=True)
class _Sum:
    """Pods and hits of one side, while they are added up."""

    pods: int = 0
    hit: Counter[Trouble] = field(default_factory=Counter)

    def add(self, hit: frozenset[Trouble]) -> None:
        self.pods += 1
        if hit:
            self.hit.update(hit)

    def merge(self, other: "_Sum") -> None:
        self.pods += other.pods
        if other.hit:
            self.hit.update(other.hit)

    def count(self, trouble: Trouble) -> Count:
        return Count(self.pods, self.hit[trouble])


@dataclass(frozen=True, slots=True)
class _Group:
    """Pods alike."""

    pods: list[_Hit]
    all: _Sum
    young: _Sum
    """Those made within the window."""


def _groups(pods: Iterable[Held], now: Moment, terms: HarmTerms) -> dict[Alike, _Group]:
    """Pods that run, or were made or hit within the window."""
    oldest, found = now - terms.window, dict[Alike, _Group]()
    for pod in pods:
        hit = hits(pod, now, terms)
        young = pod.created is not None and pod.created >= oldest
        if pod.running or hit or young:
            group = found.get(pod.alike)
            if group is None:
                group = found[pod.alike] = _Group([], _Sum(), _Sum())
            group.pods.append((pod, hit))
            group.all.add(hit)
            if young:
                group.young.add(hit)
    return found


def _to(
    policy: Watched, groups: Mapping[Alike, _Group], standings: Mapping[Alike, Standing], ledger: Ledger, now: Moment
) -> Counts:
    before, elsewhere, young, after = _Sum(), _Sum(), _Sum(), {trouble: _Sum() for trouble in Trouble}
    for alike, group in groups.items():
        standing = standings.get(alike)
        if alike.marker is not None and policy.name in alike.marker.by:
            _carrying(policy, alike, group, before, after)
        elif standing is not None and policy.name in standing.meant:
            before.merge(group.all)
        else:
            elsewhere.merge(group.all)
            young.merge(group.young)
    return {
        trouble: Compared(
            before=ledger.known_before(policy, trouble, before.count(trouble), now),
            after=after[trouble].count(trouble) + ledger.counted(policy, Side.AFTER, trouble, now),
            # Only pods as young as those blamed can tell whether nodes have room.
            elsewhere=(young if trouble is Trouble.UNSCHEDULABLE else elsewhere).count(trouble),
        )
        for trouble in Trouble
    }


def _carrying(policy: Watched, alike: Alike, group: _Group, before: _Sum, after: Mapping[Trouble, _Sum]) -> None:
    """Pods that carry its change: by the version that is in force, or by an earlier one."""
    blamed = [total for trouble, total in after.items() if may_cause(alike, policy.name, trouble)]
    for pod, hit in group.pods:
        for total in blamed if side(policy, pod, None) is Side.AFTER else (before,):
            total.add(hit)
