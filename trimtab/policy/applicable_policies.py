"""Compiles policies once, and finds the policies that apply to a pod.

A compiled policy holds its patterns, and its actions with their settings. An index gives, for a namespace and the kinds
of a pod's owners, the few policies whose `match` does not exclude these two. Each of these policies tests the pod
itself. The rollout and opt-outs then decide which of the matching policies are in effect.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from trimtab.cluster.api.meta import Labels
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.kinds import POD, GroupKind, kind_name
from trimtab.policy import reasons
from trimtab.policy.actions.requests_of_policies import adds_missing_requests
from trimtab.policy.all_actions import iterate_actions
from trimtab.policy.conditions import Match
from trimtab.policy.match import (
    PodPredicate,
    allows_opt_out,
    annotations_asked_for,
    asks_for_requests,
    containers_test,
    fields_selected_by,
    in_rollout,
    means_any_group,
    names_critical,
    names_daemons,
    namespace_test,
    opt_out_reason,
    pod_test,
)
from trimtab.policy.pod_changes import FieldKept, PodChanges
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter, PodContext
from trimtab.policy.podpolicy import PodPolicy, Policies

Propose = Callable[[Any, PodChanges, tuple[ContainerRef, ...]], None]
Unmet = Callable[[Any, PodBeforeAndAfter], str | None]
"""A function of (settings of an action, pod before and after) that returns the first field which is not as the action
requires, or None if all are."""


class MatchedPolicy(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The name of a policy that matches the pod, and the policy's mode."""

    policy: str
    mode: str


class RequiredAction(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """An action that is required: a pod without it is refused."""

    name: str
    """The action's field in `Actions`."""
    word: str
    """The action's name in the YAML of a policy."""
    unmet: Unmet
    settings: Any


class CompiledPolicy(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """One policy with its patterns and settings prepared for evaluation."""

    policy: PodPolicy
    name: str
    matched: MatchedPolicy
    applies: bool
    """Whether the policy's mode is `apply`; policies in other modes change no pod."""
    matches: PodPredicate
    """Tests every condition of the policy's match on a pod, except the one on the namespace (`in_namespace`)."""
    actions: tuple[tuple[str, Propose, Any], ...]
    """(name, function, settings) of each of the policy's actions."""
    required: tuple[RequiredAction, ...]
    """The policy's required actions: a pod without them is refused."""
    in_namespace: PodPredicate
    """Tests the condition on the namespace alone."""
    changes_guaranteed: bool
    names_daemons: bool
    names_critical: frozenset[str]
    """The PriorityClasses of the system (system-cluster-critical, system-node-critical) that the policy's match
    names."""
    matches_amounts: bool
    """Whether the match reads annotations or requests, which policies themselves change."""
    fills_requests: bool
    """Whether the policy has a rule that only adds missing requests and replaces none."""
    may_match_later: bool
    """Whether the match reads a field that another policy may change, so that the policy may match only after another
    one was applied."""
    means_container: Callable[[ContainerRef], bool] | None
    """Tests whether the match selects a container; None: it selects all."""

    def select_containers(self, pod_context: PodContext) -> tuple[ContainerRef, ...]:
        """Returns the containers to which the requests and limits of this policy apply."""
        return (
            pod_context.container_refs
            if self.means_container is None
            else tuple(filter(self.means_container, pod_context.container_refs))
        )


def compile_policies(policies: Policies) -> tuple[CompiledPolicy, ...]:
    """Returns the enabled policies, compiled, in their order."""
    enabled = [policy for policy in policies.all if policy.spec.enabled]
    changed_fields = frozenset(field for policy in enabled for field in _fields_changed(policy))
    return tuple(_compile_policy(policy, changed_fields) for policy in enabled)


def _fields_changed(policy: PodPolicy) -> Iterator[str]:
    """Yields the fields that the policy may change, by the names that `fields_selected_by` uses."""
    for action, settings in iterate_actions(policy.spec.actions):
        yield from action.list_match_fields(settings)


def find_candidate_policies(policies: Policies, pod_context: PodContext) -> tuple[CompiledPolicy, ...]:
    """Returns the policies that may match the pod, judged only by its namespace and the kinds of its owners, in their
    order."""
    return policies.compute_once(_CandidateIndex).find_candidates(pod_context)


def find_candidates_by_amounts(policies: Policies, pod_context: PodContext) -> tuple[CompiledPolicy, ...]:
    """Returns those candidate policies whose match reads annotations or requests."""
    return policies.compute_once(_AmountsCandidateIndex).find_candidates(pod_context)


# Pairs of namespace and kinds that are cached; clusters have hundreds.
_MAX_CACHED_KEYS = 4096


class _CandidateIndex:
    """Finds candidate policies by namespace and kinds of owners. Threads may share the index: at worst, two of them
    compute the same entry."""

    def __init__(self, policies: Policies) -> None:
        self._all = self._turns(policies)
        self._entries: dict[tuple[str, tuple[GroupKind, ...]], tuple[Labels | None, tuple[CompiledPolicy, ...]]] = {}

    @staticmethod
    def _turns(policies: Policies) -> tuple[CompiledPolicy, ...]:
        return policies.compute_once(compile_policies)

    def find_candidates(self, pod_context: PodContext) -> tuple[CompiledPolicy, ...]:
        kinds = tuple([owner.kind for owner in pod_context.owners]) or (POD,)
        key, labels = (pod_context.namespace, kinds), pod_context.namespace_labels
        entry = self._entries.get(key)
        # An entry holds for the labels that the namespace had when it was computed.
        if entry is None or entry[0] != labels:
            if len(self._entries) >= _MAX_CACHED_KEYS:
                # A new dict instead of `clear`: another thread may be reading the old one.
                self._entries = {}
            policies = (turn for turn in self._all if _is_possible_owner(turn.policy.spec.match, kinds))
            entry = self._entries[key] = labels, tuple(turn for turn in policies if turn.in_namespace(pod_context))
        return entry[1]


def _compile_policy(policy: PodPolicy, changed_fields: frozenset[str]) -> CompiledPolicy:
    spec = policy.spec
    actions = tuple(iterate_actions(spec.actions))
    required = tuple(
        RequiredAction(name=action.name, word=action.word, unmet=action.unmet, settings=settings)
        for action, settings in actions
        if settings.required
    )
    return CompiledPolicy(
        policy=policy,
        name=policy.name,
        matched=MatchedPolicy(policy=policy.name, mode=spec.mode),
        applies=spec.mode == "apply",
        matches=pod_test(spec.match),
        actions=tuple((action.name, action.propose, settings) for action, settings in actions),
        required=required,
        in_namespace=namespace_test(spec.match, required=bool(required)),
        changes_guaranteed=spec.guaranteed == "change",
        names_daemons=names_daemons(policy),
        names_critical=names_critical(policy),
        matches_amounts=bool(annotations_asked_for(spec.match)) or asks_for_requests(spec.match),
        fills_requests=adds_missing_requests(policy),
        may_match_later=bool(fields_selected_by(spec.match) & changed_fields),
        # None saves a filter over all containers for most policies.
        means_container=None if spec.match.containers is None else containers_test(spec.match.containers),
    )


class _AmountsCandidateIndex(_CandidateIndex):
    """Finds only those candidates whose match reads annotations or requests (`matches_amounts`)."""

    @staticmethod
    def _turns(policies: Policies) -> tuple[CompiledPolicy, ...]:
        return tuple(turn for turn in policies.compute_once(compile_policies) if turn.matches_amounts)


_WILDCARDS = frozenset("*?[")


def _is_possible_owner(match: Match, kinds: tuple[GroupKind, ...]) -> bool:
    """Returns whether the match may select an owner of one of these kinds. A match with wildcards in its kinds counts
    as possible."""
    match_kinds = [pattern.partition("/")[0] for pattern in match.owners]
    return not match_kinds or any(
        kind in kinds or _WILDCARDS & set(kind) or (means_any_group(kind) and kind in map(kind_name, kinds))
        for kind in match_kinds
    )


class ApplicablePolicies(msgspec.Struct, frozen=True, eq=False):
    """The policies that match a pod, and which of them are in effect for it."""

    subject: PodContext
    matching: tuple[CompiledPolicy, ...]
    """Policies whose `match` selects the pod."""
    in_effect: tuple[CompiledPolicy, ...]
    """Policies that are rolled out to the pod's owner and that the pod has not opted out of."""
    opted_out: tuple[CompiledPolicy, ...] = ()
    """Policies that are rolled out to the pod's owner and that the pod has opted out of."""
    earlier: tuple[CompiledPolicy, ...] = ()
    """Policies that were in effect in an earlier round, and that no longer match because a policy changed the pod."""

    @property
    def not_in_rollout(self) -> tuple[FieldKept, ...]:
        """The matching policies whose rollout does not include the pod's owner, each with the reason."""
        if len(self.matching) == len(self.in_effect):
            return ()
        rolled_out = (*self.in_effect, *self.opted_out)
        return tuple(_not_in_rollout(turn.policy) for turn in self.matching if turn not in rolled_out)

    @property
    def policies_left_out(self) -> tuple[FieldKept, ...]:
        """The matching policies that have no effect on the pod, because of their rollout or an opt-out, each with the
        reason."""
        if not self.opted_out:
            return self.not_in_rollout
        reason = opt_out_reason(self.subject)
        opted_out = tuple(FieldKept(field="", policy=turn.name, reason=reason) for turn in self.opted_out)
        return (*self.not_in_rollout, *opted_out)


def find_applicable_policies(
    policies: Policies, pod_context: PodContext, similar: ApplicablePolicies | None = None
) -> ApplicablePolicies:
    """Returns the policies whose `match` selects the pod, in their order.

    `similar` is the result for an earlier pod with the same policies, facts and settings. It is used again if the two
    pods do not differ in anything that a `match` reads.
    """
    # Whether the same policies would be selected for this pod as for `similar`. That is so if the pods do not differ
    # in anything that a `match` or a rollout reads, and if every match that reads annotations or requests gives the
    # same answer.
    if similar is not None and (
        _selection_inputs(similar.subject) == _selection_inputs(pod_context)
        and all(
            turn.matches(pod_context) is (turn in similar.matching)
            for turn in find_candidates_by_amounts(policies, pod_context)
        )
    ):
        # Only the pod's context is new; it is the one that actions and reasons read.
        return ApplicablePolicies(pod_context, similar.matching, similar.in_effect, similar.opted_out)
    return ApplicablePolicies(pod_context, *pod_context.compute_once(policies.compute_once(_PolicySelector)))


_Selection = tuple[tuple[CompiledPolicy, ...], tuple[CompiledPolicy, ...], tuple[CompiledPolicy, ...]]
"""The matching, effective and opted-out policies of `ApplicablePolicies`, without the pod's context. The context caches
this tuple, so the tuple must not refer back to the context: each review would leave a reference cycle that only the
garbage collector frees."""


class _PolicySelector:
    """Selects the policies of one set that match a pod. The pod's context caches the result
    (`PodContext.compute_once`)."""

    def __init__(self, policies: Policies) -> None:
        self._policies = policies

    def __call__(self, pod_context: PodContext) -> _Selection:
        return _select_policies(self._policies, pod_context)


def _select_policies(policies: Policies, pod_context: PodContext) -> _Selection:
    matching = tuple([turn for turn in find_candidate_policies(policies, pod_context) if turn.matches(pod_context)])
    # Only policies that name the class apply to pods that the node or the cluster needs; required actions always do.
    if pod_context.critical_class:
        matching = tuple(
            turn for turn in matching if turn.required or pod_context.critical_class in turn.names_critical
        )
    rolled_out = tuple([turn for turn in matching if in_rollout(turn.policy, pod_context)])
    # Nearly every pod.
    if pod_context.opt_out is None:
        return matching, rolled_out, ()
    opted_out = tuple([turn for turn in rolled_out if allows_opt_out(turn.policy, pod_context)])
    return matching, tuple([turn for turn in rolled_out if turn not in opted_out]), opted_out


def _selection_inputs(pod_context: PodContext) -> tuple[object, ...]:
    """Returns everything that a `match` or a rollout reads of a pod, except facts, annotations and requests."""
    pod: Pod = pod_context.pod
    spec, metadata = pod.spec, pod.metadata
    return (
        metadata.labels,
        spec.runtime_class_name,
        spec.priority_class_name,
        pod_context.owners,
        metadata.name,
        metadata.generate_name,
        pod_context.namespace,
        pod_context.opt_out,
        spec.service_account_name,
        [
            (container.name, container.image, container.restart_policy)
            for container in (*spec.containers, *spec.init_containers)
        ],
        len(spec.containers),
    )


def _not_in_rollout(policy: PodPolicy) -> FieldKept:
    reason = reasons.NOT_IN_ROLLOUT(
        f"the policy is rolled out to only {policy.spec.rollout}% of the owners of pods, and this owner is not "
        "included yet"
    )
    return FieldKept(field="", policy=policy.name, reason=reason)
