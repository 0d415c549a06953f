"""Which policies can mean this pod at all, and what would each do?

Read out of a set of policies once: patterns, actions with their settings, and for a namespace and the kinds of a pod's
owners the few policies whose `match` does not rule them out by these words alone.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from trimtab.policy.actions import (
    labels,
    limits,
    overhead,
    placement,
    priority_class,
    requests,
    runtime_class,
    safe_to_evict_volumes,
    topology_spread,
)
from trimtab.policy.document import Match, PodPolicy, Policies
from trimtab.policy.draft import Draft
from trimtab.policy.match import Test, name_test, names_daemons, test
from trimtab.policy.subject import Place, Subject

Propose = Callable[[Any, Draft, tuple[Place, ...]], None]

ACTIONS: tuple[tuple[str, Propose], ...] = (
    ("runtime_class", runtime_class.propose),
    ("overhead", overhead.propose),
    ("priority_class", priority_class.propose),
    ("requests", requests.propose),
    ("limits", limits.propose),
    ("placement", placement.propose),
    ("topology_spread", topology_spread.propose),
    ("safe_to_evict_volumes", safe_to_evict_volumes.propose),
    ("labels", labels.propose),
    ("annotations", labels.propose_annotations),
)
"""Field of `Actions` → what it would do. A class comes first: what it brings decides what placement contradicts."""


class Matched(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A policy that meant the pod, and what it is allowed to do about it."""

    policy: str
    mode: str


class Turn(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """One policy, made ready to be asked."""

    policy: PodPolicy
    name: str
    matched: Matched
    applies: bool
    """Of mode `apply`; the others only watch."""
    matches: Test
    actions: tuple[tuple[str, Propose, Any], ...]
    """What it does: name, function, settings."""
    changes_guaranteed: bool
    names_daemons: bool


def turns(policies: Policies) -> tuple[Turn, ...]:
    """All that are switched on, in their order."""
    return tuple(_turn(policy) for policy in policies.all if policy.spec.enabled)


def possible(policies: Policies, subject: Subject) -> tuple[Turn, ...]:
    """The policies, in their order, that are left to be asked whether they mean the pod."""
    index = policies.once(_Index)
    kinds = tuple(owner.kind for owner in subject.owners) or ("Pod",)
    return index.find(subject.namespace, kinds)


_MOST = 4096
"""Pairs of namespace and kinds that are remembered; clusters have hundreds."""


class _Index:
    """By namespace and kinds of owners. For one thread, or for several that may find the same twice."""

    def __init__(self, policies: Policies) -> None:
        self._all = policies.once(turns)
        self._found: dict[tuple[str, tuple[str, ...]], tuple[Turn, ...]] = {}

    def find(self, namespace: str, kinds: tuple[str, ...]) -> tuple[Turn, ...]:
        found = self._found.get((namespace, kinds))
        if found is None:
            if len(self._found) >= _MOST:
                self._found = {}
            found = tuple(turn for turn in self._all if _is_possible(turn.policy.spec.match, namespace, kinds))
            self._found[namespace, kinds] = found
        return found


def _turn(policy: PodPolicy) -> Turn:
    spec = policy.spec
    given = ((name, propose, getattr(spec.actions, name)) for name, propose in ACTIONS)
    return Turn(
        policy=policy,
        name=policy.name,
        matched=Matched(policy=policy.name, mode=spec.mode),
        applies=spec.mode == "apply",
        matches=test(spec.match),
        actions=tuple(action for action in given if action[2] is not None),
        changes_guaranteed=spec.guaranteed == "change",
        names_daemons=names_daemons(policy),
    )


_PATTERN = frozenset("*?[")


def _is_possible(match: Match, namespace: str, kinds: tuple[str, ...]) -> bool:
    """Patterns for kinds are left to the match itself."""
    if match.namespaces is not None and not name_test(match.namespaces)(namespace):
        return False
    named = [pattern.partition("/")[0] for pattern in match.owners]
    return not named or any(kind in kinds or _PATTERN & set(kind) for kind in named)
