"""Who decided which field first, and what came of it?

A draft is one pod while the policies are asked, highest priority first. The first policy that decides a field wins;
a later one that wants something else is noted as overruled. Fields have readable names, such as
`containers[app].requests.cpu`; the same names stand in explanations, metrics and the marker annotation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from trimtab.cluster.api.meta import Metadata, change
from trimtab.cluster.api.pod import Pod, PodSpec
from trimtab.cluster.quantity import Written
from trimtab.cluster.reason import Reason
from trimtab.policy import reasons
from trimtab.policy.field_owners import applied_by
from trimtab.policy.pod_context import ContainerRef, PodContext

Value = str | int | None
"""A field's value as people read it; None: absent."""


class FieldChange(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One field that is other than it was."""

    field: str
    before: Value
    after: Value
    policy: str
    reason: Reason


class FieldKept(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Something a policy wanted, or would have, and why it did not happen."""

    field: str
    policy: str
    reason: Reason
    loud: bool = False
    """Worth a warning to whoever created the pod."""


class ResourceRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a policy wants of one resource of one container, before bounds are looked at."""

    place: ContainerRef
    resource: str
    value: Written | None
    """The quantity; None removes (limits only)."""
    policy: str
    reason: Reason
    factor: str | None = None
    """A limit that follows the request: request × factor."""
    changes_guaranteed: bool = False
    wrote: Written | None = None
    """Of a share of the request: what its author wrote; None: the value is no share of it."""


@dataclass(frozen=True, slots=True)
class RequestToLimitRatio:
    """A request that is a share of its limit."""

    policy: str
    percent: int
    bounded: bool = False
    """The rule has a min, a max or a step of its own: the request may come out as another share."""


@dataclass(slots=True, kw_only=True)
class PodChanges:
    """Mutable, and seen by nobody but one `decide`."""

    subject: PodContext
    policy: str = ""
    """Whose turn it is."""
    changes_guaranteed: bool = False
    """May the policy whose turn it is lower a Guaranteed pod's class of service?"""
    names_daemons: bool = False
    """Does the policy whose turn it is name DaemonSet as an owner?"""
    silent: bool = False
    """Nobody will read why something stays as it is."""
    is_guarded: bool = True
    """Is it taken back and told when a step fails?"""
    metadata: Metadata = field(init=False)
    spec: PodSpec = field(init=False)
    requests: dict[tuple[ContainerRef, str], ResourceRequest] = field(default_factory=dict)
    limits: dict[tuple[ContainerRef, str], ResourceRequest] = field(default_factory=dict)
    guesses: dict[tuple[ContainerRef, str], None] = field(default_factory=dict)
    """Requests that are, or would be, a mere `otherwise`."""
    shares: dict[tuple[ContainerRef, str], RequestToLimitRatio] = field(default_factory=dict)
    """Requests that follow their limit: a limit must not follow them in turn."""
    yielding: dict[tuple[ContainerRef, str], tuple[Any, ...]] = field(default_factory=dict)
    """Container and resource → the rules that give a request only where none is written, and found one."""
    bounds: dict[tuple[ContainerRef, str], tuple[Any, ...]] = field(default_factory=dict)
    """Container and resource → the rules that bound a request, and found none: they bound what a later policy gives."""
    changes: list[FieldChange] = field(default_factory=list)
    left: dict[FieldKept, None] = field(default_factory=dict)
    """What was left alone and why, in the order in which it was said."""
    denied: Reason | None = None
    applied_before: Mapping[str, str] = field(default_factory=dict)
    """Field → the value an earlier call of ours gave it in this admission (from the marker)."""
    decided_before: Mapping[str, tuple[str, Value]] = field(default_factory=dict)
    """Field → the policy that decided it then, and what it decided: it stays the first."""
    _deciders: dict[str, tuple[str, Value]] = field(default_factory=dict)
    _asked: dict[str, None] = field(default_factory=dict)
    """Fields that were decided, or decided again, in this round."""

    def __post_init__(self) -> None:
        self._deciders = dict(self.decided_before)
        self.metadata = self.subject.pod.metadata
        self.spec = self.subject.pod.spec

    def create_savepoint(self) -> tuple[Any, ...]:
        """Where the draft stands, for `restore`. What it collects only grows, so counts tell."""
        return (
            self.metadata, self.spec, self.denied, len(self.changes), len(self.requests), len(self.limits),
            len(self.shares), len(self._deciders), len(self._asked), len(self.guesses), len(self.left),
            len(self.yielding), len(self.bounds),
        )  # fmt: skip

    def restore_savepoint(self, kept: tuple[Any, ...]) -> None:
        """Everything as it was at `kept`."""
        self.metadata, self.spec, self.denied, changes, *counts = kept
        del self.changes[changes:]
        grown: tuple[dict[Any, Any], ...] = (
            self.requests, self.limits, self.shares, self._deciders, self._asked, self.guesses, self.left,
            self.yielding, self.bounds,
        )  # fmt: skip
        for collected, count in zip(grown, counts, strict=True):
            while len(collected) > count:
                collected.popitem()

    def changed_since(self, kept: tuple[Any, ...]) -> bool:
        """Was anything decided since then? Things said count for nothing."""
        now = self.create_savepoint()
        return any(a is not b for a, b in zip(now[:3], kept[:3], strict=True)) or now[3:-4] != kept[3:-4]

    @property
    def changed_pod(self) -> Pod:
        """The pod as decided so far; the very same object where nothing changed."""
        before = self.subject.pod
        if self.metadata is before.metadata and self.spec is before.spec:
            return before
        return change(before, metadata=self.metadata, spec=self.spec)

    def claim_field(
        self, name: str, before: Value, after: Value, reason: Reason, *, replaces: bool | str | None = None
    ) -> bool:
        """May the policy whose turn it is give the field this value? Notes the change, or why not.

        replaces: whether something that the pod's author wrote goes, or the other field in which it does; None: it does
        where there was a value.
        """
        if not self.decide_first(name, after):
            return False
        if before == after:
            return False
        goes = before is not None if replaces is None else replaces
        if goes and self.must_stay_applied(name, written=goes if isinstance(goes, str) else name):
            return False
        if self.is_foreign(name, before):
            self.leave_unchanged(
                name, reasons.CHANGED_AFTER_US(f"{name} was {self.applied_before[name]}, is now {before}"), loud=True
            )
            return False
        self.changes.append(FieldChange(field=name, before=before, after=after, policy=self.policy, reason=reason))
        return True

    def must_stay_applied(self, name: str, policy: str | None = None, *, written: str | None = None) -> bool:
        """Must what its author wrote stay, because the pod itself will be applied again? Then says so.

        written: the field in which they wrote it; None: this one.
        """
        by = applied_by(self.subject, written or name)
        if by:
            stays = reasons.APPLIED(f"{name} stays as it is written: the pod itself is kept by {by}")
            self.leave_unchanged(name, stays, loud=True, policy=policy)
        return bool(by)

    def decide_first(self, name: str, after: Value) -> bool:
        """Is this policy the first to decide the field? A later one with another wish is noted as overruled."""
        first = self._deciders.setdefault(name, (self.policy, after))
        self._asked[name] = None
        if first[0] == self.policy:
            return True
        if first[1] != after:
            self.leave_unchanged(
                name, reasons.OVERRULED(f"{first[0]} decided {name} ({_shown(first[1])}, not {_shown(after)})")
            )
        return False

    def is_overruled(self, name: str, after: Value) -> bool:
        """Has another policy decided the field otherwise? Says so; decides nothing."""
        first = self._deciders.get(name)
        return (
            first is not None and first[0] != self.policy and not self.decide_first(name, after) and first[1] != after
        )

    def is_decided(self, name: str) -> bool:
        """Has any policy decided this field?"""
        return name in self._deciders

    def is_decided_by_another(self, name: str) -> bool:
        """Has a policy that was asked before this one decided the field?"""
        return name in self._asked and self._deciders[name][0] != self.policy

    def is_foreign(self, name: str, before: Value) -> bool:
        """Did something else change the field after an earlier call of ours had set it?"""
        ours = self.applied_before.get(name)
        return ours is not None and before is not None and ours != str(before)

    def was_removed_before(self, name: str) -> bool:
        """Did an earlier call of ours remove the field?"""
        return name in self.decided_before and self.decided_before[name][1] is None

    def was_set_before(self, name: str, value: Written) -> bool:
        """Did an earlier call of ours give the field this value?"""
        return self.applied_before.get(name) == str(value)

    def record_change(self, name: str, before: Value, after: Value, reason: Reason, policy: str | None = None) -> None:
        """A change that follows from another one."""
        self.changes.append(
            FieldChange(field=name, before=before, after=after, policy=policy or self.policy, reason=reason)
        )

    def leave_unchanged(self, name: str, reason: Reason, *, loud: bool = False, policy: str | None = None) -> None:
        """Say why something stays as it is; said once."""
        if not self.silent:
            self.left.setdefault(FieldKept(field=name, policy=policy or self.policy, reason=reason, loud=loud))


def _shown(value: Value) -> str:
    return "none" if value is None else str(value)
