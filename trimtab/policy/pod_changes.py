"""Collects what the policies change in one pod: which policy was the first to decide which field, and the resulting
pod.

Policies act in order of priority. The first policy that decides a field wins; a later one that sets another value is
recorded as overruled. Fields have readable names, such as `containers[app].requests.cpu`; explanations, metrics and the
`trimtab.dev/changed` annotation use the same names.
"""

from collections.abc import Mapping
from dataclasses import dataclass
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
"""The value of a field as messages show it; None: the field is absent."""


class FieldChange(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One field whose new value differs from the value that the pod had."""

    field: str
    before: Value
    after: Value
    policy: str
    reason: Reason


class FieldKept(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A field that a policy was to change but did not change, with the reason."""

    field: str
    policy: str
    reason: Reason
    loud: bool = False
    """Whether the user who creates the pod gets the reason as a warning."""


class ResourceRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The request or limit that a policy proposes for one resource of one container, before any bounds are applied."""

    place: ContainerRef
    resource: str
    value: Written | None
    """The quantity; None removes a limit."""
    policy: str
    reason: Reason
    factor: str | None = None
    """For a limit that follows the request: the factor by which the request is multiplied."""
    changes_guaranteed: bool = False
    wrote: Written | None = None
    """For a rule that computes a share of the request: the request that the author wrote, or an empty text if the
    author wrote none. None for any other rule."""


@dataclass(frozen=True, slots=True)
class RequestToLimitRatio:
    """A request that a rule computes as a share of the container's limit."""

    policy: str
    percent: int
    bounded: bool = False
    """Whether the rule has a minimum, a maximum or a rounding step, so that the request may become another share of the
    limit."""


class WholePodRequest(msgspec.Struct, frozen=True, gc=False):
    """What a policy says about the request of a pod as a whole."""

    policy: str
    rule: Any
    """The rule of the policy (`pod_level_requests.PodLevelRule`)."""
    places: tuple[ContainerRef, ...]
    """The containers to which the policy applies."""


class PodChanges(msgspec.Struct, kw_only=True, eq=False):
    """The changes to one pod while the policies act. It is mutable, and used only within one call of `decide`."""

    pod_context: PodContext
    policy: str = ""
    """The policy that is acting now."""
    changes_guaranteed: bool = False
    """Whether the policy that is acting may change the class of a Guaranteed pod."""
    names_daemons: bool = False
    """Whether the policy that is acting names DaemonSet as an owner."""
    silent: bool = False
    """If True, reasons why fields are not changed are not recorded."""
    turns: tuple[Any, ...] = ()
    """All policies of this round, in their order (`CompiledPolicy`)."""
    is_guarded: bool = True
    """If True, a step that fails is undone and reported; if False, its exception is raised."""
    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
    requests: dict[tuple[ContainerRef, str], ResourceRequest] = msgspec.field(default_factory=dict)
    limits: dict[tuple[ContainerRef, str], ResourceRequest] = msgspec.field(default_factory=dict)
    guesses: dict[tuple[ContainerRef, str], None] = msgspec.field(default_factory=dict)
    """Container and resource of each request that is, or would be, only the policy's `otherwise`."""
    shares: dict[tuple[ContainerRef, str], RequestToLimitRatio] = msgspec.field(default_factory=dict)
    """Container and resource of each request that is a share of its limit. That limit must not in turn be computed from
    the request."""
    bounds: dict[tuple[ContainerRef, str], tuple[Any, ...]] = msgspec.field(default_factory=dict)
    """Container and resource → rules of policies that did not set the request, but whose bounds apply to the request
    that a later policy sets."""
    whole_pod: dict[str, WholePodRequest] = msgspec.field(default_factory=dict)
    """Resource → what the first policy says that requests for the pod as a whole."""
    changes: list[FieldChange] = msgspec.field(default_factory=list)
    fields_kept: dict[FieldKept, None] = msgspec.field(default_factory=dict)
    """The fields that are not changed, with the reasons, in the order in which these were recorded."""
    denied: Reason | None = None
    applied_before: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Field → the value that an earlier call of the webhook, in the same admission, gave it (according to the
    annotation)."""
    decided_before: Mapping[str, tuple[str, Value]] = msgspec.field(default_factory=dict)
    """Field → (policy that decided it in an earlier call, its value). That policy stays the first one to decide the
    field."""
    _deciders: dict[str, tuple[str, Value]] = msgspec.field(default_factory=dict)
    _decided_this_round: dict[str, None] = msgspec.field(default_factory=dict)
    """The fields that a policy has decided, or confirmed, in this round."""

    def __post_init__(self) -> None:
        # A second call of the webhook begins with the deciders of the first, so that priorities hold across both calls.
        self._deciders = dict(self.decided_before)
        self.metadata = self.pod_context.pod.metadata
        self.spec = self.pod_context.pod.spec

    def create_savepoint(self) -> tuple[Any, ...]:
        """Returns a savepoint for `restore_savepoint`: the immutable values, and the lengths of the collections."""
        # Every collection only grows, and dicts keep the order of insertion: a length says which entries are older.
        # Lengths cost far less than copies, and most savepoints are never restored.
        return (
            self.metadata,
            self.spec,
            self.denied,
            len(self.changes),
            len(self.requests),
            len(self.limits),
            len(self.shares),
            len(self._deciders),
            len(self._decided_this_round),
            len(self.whole_pod),
            len(self.guesses),
            len(self.fields_kept),
            len(self.bounds),
        )

    def restore_savepoint(self, savepoint: tuple[Any, ...]) -> None:
        """Undoes everything that happened after the savepoint."""
        self.metadata, self.spec, self.denied, changes, *counts = savepoint
        del self.changes[changes:]
        grown: tuple[dict[Any, Any], ...] = (
            self.requests,
            self.limits,
            self.shares,
            self._deciders,
            self._decided_this_round,
            self.whole_pod,
            self.guesses,
            self.fields_kept,
            self.bounds,
        )
        for collected, count in zip(grown, counts, strict=True):
            while len(collected) > count:
                collected.popitem()

    def changed_since(self, savepoint: tuple[Any, ...]) -> bool:
        """Returns whether any field was decided after the savepoint. Recorded reasons do not count."""
        metadata, spec, denied, *_ = savepoint
        if self.metadata is not metadata or self.spec is not spec or self.denied is not denied:
            return True
        # The last three lengths are of guesses, reasons and rules: they say something, and decide nothing.
        return self.create_savepoint()[3:-3] != savepoint[3:-3]

    @property
    def changed_pod(self) -> Pod:
        """The pod with all changes so far; the same object as the original if nothing was changed."""
        before = self.pod_context.pod
        if self.metadata is before.metadata and self.spec is before.spec:
            return before
        return change(before, metadata=self.metadata, spec=self.spec)

    def claim_field(
        self, name: str, before: Value, after: Value, reason: Reason, *, replaces: bool | str | None = None
    ) -> bool:
        """Records the change and returns True if the policy that is acting may give the field this value; otherwise
        records why not and returns False.

        `replaces`: whether the change replaces something that the pod's author wrote, or the name of another field in
        which the author wrote it. None: it does if the field had a value.
        """
        if not self.decide_first(name, after):
            return False
        # The field is decided all the same: a later policy must not change it.
        if before == after:
            return False
        replaced = before is not None if replaces is None else replaces
        if replaced and self.must_stay_applied(name, author_field=replaced if isinstance(replaced, str) else name):
            return False
        if self.is_foreign(name, before):
            self.leave_unchanged(
                name,
                reasons.CHANGED_AFTER_US(
                    f"Trimtab set {name} to {self.applied_before[name]}, but another webhook has set it to "
                    f"{before} since"
                ),
                loud=True,
            )
            return False
        self.changes.append(FieldChange(field=name, before=before, after=after, policy=self.policy, reason=reason))
        return True

    def must_stay_applied(self, name: str, policy: str | None = None, *, author_field: str | None = None) -> bool:
        """Returns whether the author's value must not be replaced because the pod itself will be applied again. If so,
        the reason is recorded.

        `author_field` is the field in which the author wrote the value; None: the same field.
        """
        manager = applied_by(self.pod_context, author_field or name)
        if manager:
            reason = reasons.APPLIED(
                f"{name} is not changed, because {manager} manages the pod directly and would conflict with the change"
            )
            self.leave_unchanged(name, reason, loud=True, policy=policy)
        return bool(manager)

    def decide_first(self, name: str, after: Value) -> bool:
        """Returns whether this policy is the first to decide the field. If it is not and wants another value, it is
        recorded as overruled."""
        # `setdefault` keeps an earlier decider, also one of an earlier call.
        first = self._deciders.setdefault(name, (self.policy, after))
        self._decided_this_round[name] = None
        if first[0] == self.policy:
            return True
        if first[1] != after:
            self.leave_unchanged(
                name,
                reasons.OVERRULED(
                    f"policy {first[0]} has already decided {name}: {_shown(first[1])}, not {_shown(after)}"
                ),
            )
        return False

    def is_overruled(self, name: str, after: Value) -> bool:
        """Returns whether another policy has already given the field another value, which is then recorded. The field
        is not decided by this call."""
        first = self._deciders.get(name)
        return (
            first is not None and first[0] != self.policy and not self.decide_first(name, after) and first[1] != after
        )

    def is_decided(self, name: str) -> bool:
        """Returns whether any policy has decided this field."""
        return name in self._deciders

    def is_decided_by_another(self, name: str) -> bool:
        """Returns whether a policy that acted earlier in this round has decided the field."""
        return name in self._decided_this_round and self._deciders[name][0] != self.policy

    def is_foreign(self, name: str, before: Value) -> bool:
        """Returns whether something other than Trimtab has changed the field since an earlier call of the webhook set
        it."""
        applied = self.applied_before.get(name)
        return applied is not None and before is not None and applied != str(before)

    def was_removed_before(self, name: str) -> bool:
        """Returns whether an earlier call of the webhook removed the field."""
        return name in self.decided_before and self.decided_before[name][1] is None

    def was_set_before(self, name: str, value: Written) -> bool:
        """Returns whether an earlier call of the webhook gave the field this value."""
        return self.applied_before.get(name) == str(value)

    def record_change(self, name: str, before: Value, after: Value, reason: Reason, policy: str | None = None) -> None:
        """Records a change of a field that is a consequence of another change."""
        self.changes.append(
            FieldChange(field=name, before=before, after=after, policy=policy or self.policy, reason=reason)
        )

    def leave_unchanged(self, name: str, reason: Reason, *, loud: bool = False, policy: str | None = None) -> None:
        """Records why a field is not changed. Equal records are kept once."""
        if not self.silent:
            self.fields_kept.setdefault(FieldKept(field=name, policy=policy or self.policy, reason=reason, loud=loud))


def _shown(value: Value) -> str:
    return "none" if value is None else str(value)
