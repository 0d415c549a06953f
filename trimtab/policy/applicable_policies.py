"""Which policies can mean this pod at all, and what would each do?

Read out of a set of policies once: patterns, actions with their settings, and for a namespace and the kinds of a pod's
owners the few policies whose `match` does not rule them out by these words alone.

Which policies are asked about this pod?
"""

from collections.abc import Callable
from typing import Any

import msgspec
from pydantic.alias_generators import to_camel

from trimtab.cluster.api.meta import Labels
from trimtab.cluster.api.pod import Container, Pod
from trimtab.policy import reasons
from trimtab.policy.actions import (
    empty_dirs,
    labels,
    limits,
    overhead,
    placement,
    priority_class,
    requests,
    runtime_class,
    safe_to_evict_volumes,
    scheduler_name,
    termination_grace_period,
    topology_spread,
)
from trimtab.policy.match import (
    Test,
    allows_opt_out,
    annotations_asked_for,
    asks_for_requests,
    containers_test,
    in_rollout,
    names_critical,
    names_daemons,
    namespace_test,
    opt_out_reason,
    pod_test,
)
from trimtab.policy.pod_changes import FieldKept, PodChanges
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter, PodContext
from trimtab.policy.podpolicy import Match, PodPolicy, Policies
from trimtab.policy.required_action_rules import required_actions

Propose = Callable[[Any, PodChanges, tuple[ContainerRef, ...]], None]
Unmet = Callable[[Any, PodBeforeAndAfter], str | None]
"""An action's settings and a result → the field that is not as the action says; None: all of it is."""

ACTIONS: tuple[tuple[str, Propose, Unmet], ...] = (
    ("runtime_class", runtime_class.propose, runtime_class.unmet),
    ("overhead", overhead.propose, overhead.unmet),
    ("priority_class", priority_class.propose, priority_class.unmet),
    ("requests", requests.propose, requests.unmet),
    ("limits", limits.propose, limits.unmet),
    ("placement", placement.propose, placement.unmet),
    ("topology_spread", topology_spread.propose, topology_spread.unmet),
    ("scheduler_name", scheduler_name.propose, scheduler_name.unmet),
    ("termination_grace_period", termination_grace_period.propose, termination_grace_period.unmet),
    ("empty_dirs", empty_dirs.propose, empty_dirs.unmet),
    ("safe_to_evict_volumes", safe_to_evict_volumes.propose, safe_to_evict_volumes.unmet),
    ("labels", labels.propose, labels.unmet),
    ("annotations", labels.propose_annotations, labels.unmet_annotations),
)
"""Field of `Actions` → what it would do, and what it misses in a pod where it is required. A class comes first: what
it brings decides what placement contradicts."""


class MatchedPolicy(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A policy that meant the pod, and what it is allowed to do about it."""

    policy: str
    mode: str


class RequiredAction(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """An action without which a pod must not run."""

    name: str
    """As a field of `Actions`."""
    word: str
    """As in a policy."""
    unmet: Unmet
    settings: Any


class CompiledPolicy(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """One policy, made ready to be asked."""

    policy: PodPolicy
    name: str
    matched: MatchedPolicy
    applies: bool
    """Of mode `apply`; the others only watch."""
    matches: Test
    """Every condition but the one on the namespace, which is `in_namespace`."""
    actions: tuple[tuple[str, Propose, Any], ...]
    """What it does: name, function, settings."""
    required: tuple[RequiredAction, ...]
    """Those of them without which the pod must not run."""
    in_namespace: Test
    """The condition on the namespace alone."""
    changes_guaranteed: bool
    names_daemons: bool
    names_critical: frozenset[str]
    """The PriorityClasses of the system that its match names."""
    matches_amounts: bool
    """Does its match ask for annotations or requests, which policies themselves change?"""
    means_container: Callable[[ContainerRef], bool] | None
    """Of which containers its match speaks; None: of all."""

    def places(self, subject: PodContext) -> tuple[ContainerRef, ...]:
        """The containers that requests and limits of this policy mean."""
        return subject.places if self.means_container is None else tuple(filter(self.means_container, subject.places))


def turns(policies: Policies) -> tuple[CompiledPolicy, ...]:
    """All that are switched on, in their order."""
    return tuple(_turn(policy) for policy in policies.all if policy.spec.enabled)


def possible(policies: Policies, subject: PodContext) -> tuple[CompiledPolicy, ...]:
    """The policies, in their order, whose `match` the pod's namespace and the kinds of its owners do not rule out."""
    return policies.once(_Index).find(subject)


def possible_by_amounts(policies: Policies, subject: PodContext) -> tuple[CompiledPolicy, ...]:
    """Those of `possible` whose match asks for annotations or requests."""
    return policies.once(_AmountsIndex).find(subject)


_MAX_INDEXED = 4096
"""Pairs of namespace and kinds that are remembered; clusters have hundreds."""


class _Index:
    """Policies by namespace and kinds of owners. For one thread, or for several that may compute an entry twice."""

    def __init__(self, policies: Policies) -> None:
        self._all = self._turns(policies)
        self._entries: dict[tuple[str, tuple[str, ...]], tuple[Labels | None, tuple[CompiledPolicy, ...]]] = {}

    @staticmethod
    def _turns(policies: Policies) -> tuple[CompiledPolicy, ...]:
        return policies.once(turns)

    def find(self, subject: PodContext) -> tuple[CompiledPolicy, ...]:
        kinds = tuple([owner.kind for owner in subject.owners]) or ("Pod",)
        key, labels = (subject.namespace, kinds), subject.namespace_labels
        entry = self._entries.get(key)
        if entry is None or entry[0] != labels:  # an entry is right for the labels that the namespace had
            if len(self._entries) >= _MAX_INDEXED:
                self._entries = {}
            policies = (turn for turn in self._all if _may_be_owned(turn.policy.spec.match, kinds))
            entry = self._entries[key] = labels, tuple(turn for turn in policies if turn.in_namespace(subject))
        return entry[1]


def _turn(policy: PodPolicy) -> CompiledPolicy:
    spec = policy.spec
    given = ((name, propose, getattr(spec.actions, name)) for name, propose, _ in ACTIONS)
    names = frozenset(required_actions(spec.actions))
    required = tuple(
        RequiredAction(name=name, word=to_camel(name), unmet=unmet, settings=getattr(spec.actions, name))
        for name, _, unmet in ACTIONS
        if name in names
    )
    return CompiledPolicy(
        policy=policy,
        name=policy.name,
        matched=MatchedPolicy(policy=policy.name, mode=spec.mode),
        applies=spec.mode == "apply",
        matches=pod_test(spec.match),
        actions=tuple(action for action in given if action[2] is not None),
        required=required,
        in_namespace=namespace_test(spec.match, required=bool(required)),
        changes_guaranteed=spec.guaranteed == "change",
        names_daemons=names_daemons(policy),
        names_critical=names_critical(policy),
        matches_amounts=bool(annotations_asked_for(spec.match)) or asks_for_requests(spec.match),
        means_container=None if spec.match.containers is None else containers_test(spec.match.containers),
    )


class _AmountsIndex(_Index):
    """Of `matches_amounts` alone."""

    @staticmethod
    def _turns(policies: Policies) -> tuple[CompiledPolicy, ...]:
        return tuple(turn for turn in policies.once(turns) if turn.matches_amounts)


_PATTERN = frozenset("*?[")


def _may_be_owned(match: Match, kinds: tuple[str, ...]) -> bool:
    """Could an owner of one of these kinds be meant? Patterns for kinds are left to the match itself."""
    named = [pattern.partition("/")[0] for pattern in match.owners]
    return not named or any(kind in kinds or _PATTERN & set(kind) for kind in named)


class ApplicablePolicies(msgspec.Struct, frozen=True, eq=False):
    """Who means a pod, and whose share it is in."""

    subject: PodContext
    meaning: tuple[CompiledPolicy, ...]
    ours: tuple[CompiledPolicy, ...]
    """Those that are rolled out to the pod's owner, and of whom it has not opted out."""
    opted_out: tuple[CompiledPolicy, ...] = ()
    """Those that are rolled out to it and allow that it opted out."""

    @property
    def not_in_rollout(self) -> tuple[FieldKept, ...]:
        """What is said of the others."""
        if len(self.meaning) == len(self.ours):
            return ()
        drawn = (*self.ours, *self.opted_out)
        return tuple(_left_out(turn.policy) for turn in self.meaning if turn not in drawn)

    @property
    def not_asked(self) -> tuple[FieldKept, ...]:
        """What is said of the policies that mean the pod and are not asked: outside the rollout, or opted out of."""
        if not self.opted_out:
            return self.not_in_rollout
        reason = opt_out_reason(self.subject)
        said = tuple(FieldKept(field="", policy=turn.name, reason=reason) for turn in self.opted_out)
        return (*self.not_in_rollout, *said)


def ask(policies: Policies, subject: PodContext, like: ApplicablePolicies | None = None) -> ApplicablePolicies:
    """The policies whose `match` means the pod, in their order.

    like: what was found of a pod before, with the same policies, facts and terms; found again where nothing differs
    that a `match` asks for.
    """
    if like is not None and _is_found_again(policies, subject, like):
        return ApplicablePolicies(subject, like.meaning, like.ours, like.opted_out)
    return ApplicablePolicies(subject, *subject.once(policies.once(_Chooser)))


_Choice = tuple[tuple[CompiledPolicy, ...], tuple[CompiledPolicy, ...], tuple[CompiledPolicy, ...]]
"""Policies as in `ApplicablePolicies`, without the subject: what a subject keeps must not lead back to it, or each
review leaves garbage that only the collector frees."""


class _Chooser:
    """Chooses among one set of policies. A subject keeps what was chosen for it (`PodContext.once`)."""

    def __init__(self, policies: Policies) -> None:
        self._policies = policies

    def __call__(self, subject: PodContext) -> _Choice:
        return _chosen(self._policies, subject)


def _chosen(policies: Policies, subject: PodContext) -> _Choice:
    meaning = tuple([turn for turn in possible(policies, subject) if turn.matches(subject)])
    if subject.critical_class:
        meaning = tuple(turn for turn in meaning if turn.required or subject.critical_class in turn.names_critical)
    drawn = tuple([turn for turn in meaning if in_rollout(turn.policy, subject)])
    if subject.opt_out is None:
        return meaning, drawn, ()
    opted_out = tuple([turn for turn in drawn if allows_opt_out(turn.policy, subject)])
    return meaning, tuple([turn for turn in drawn if turn not in opted_out]), opted_out


def _is_found_again(policies: Policies, subject: PodContext, like: ApplicablePolicies) -> bool:
    """Would the same policies be found? So where nothing differs that a `match` or a rollout reads, annotations and
    requests aside, and where each match that asks for those answers as it did.
    """
    return _chosen_by(like.subject) == _chosen_by(subject) and all(
        turn.matches(subject) is (turn in like.meaning) for turn in possible_by_amounts(policies, subject)
    )


def _chosen_by(subject: PodContext) -> tuple[object, ...]:
    """All that a `match` or a rollout reads of a pod; the facts, annotations and requests aside."""
    pod: Pod = subject.pod
    spec, metadata = pod.spec, pod.metadata
    return (
        metadata.labels, spec.runtime_class_name, spec.priority_class_name, subject.owners,
        metadata.name, metadata.generate_name, subject.namespace, subject.opt_out, spec.service_account_name,
        [_of(container) for container in (*spec.containers, *spec.init_containers)], len(spec.containers),
    )  # fmt: skip


def _of(container: Container) -> tuple[object, ...]:
    return container.name, container.image, container.restart_policy


def _left_out(policy: PodPolicy) -> FieldKept:
    reason = reasons.NOT_IN_ROLLOUT(f"rolled out to {policy.spec.rollout}% of owners")
    return FieldKept(field="", policy=policy.name, reason=reason)
