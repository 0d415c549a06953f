"""Which policies are asked about this pod?"""

import msgspec

from trimtab.cluster.api.pod import Container, Pod
from trimtab.policy import reasons
from trimtab.policy.document import PodPolicy, Policies
from trimtab.policy.draft import Left
from trimtab.policy.match import in_rollout
from trimtab.policy.subject import Subject
from trimtab.policy.turns import Turn, possible


class Asked(msgspec.Struct, frozen=True, eq=False):
    """Who means a pod, and whose share it is in."""

    subject: Subject
    meaning: tuple[Turn, ...]
    ours: tuple[Turn, ...]
    """Those that are rolled out to the pod's owner."""

    @property
    def not_in_rollout(self) -> tuple[Left, ...]:
        """What is said of the others."""
        if len(self.meaning) == len(self.ours):
            return ()
        return tuple(_left_out(turn.policy) for turn in self.meaning if turn not in self.ours)


def ask(policies: Policies, subject: Subject, like: Asked | None = None) -> Asked:
    """The policies whose `match` means the pod, in their order.

    like: what was found of a pod before, with the same policies, facts and terms; found again where nothing differs
    that a `match` asks for.
    """
    if like is not None and _chosen_by(like.subject) == _chosen_by(subject):
        return Asked(subject, like.meaning, like.ours)
    meaning = tuple([turn for turn in possible(policies, subject) if turn.matches(subject)])
    return Asked(subject, meaning, tuple([turn for turn in meaning if in_rollout(turn.policy, subject)]))


def _chosen_by(subject: Subject) -> tuple[object, ...]:
    """All that a `match` or a rollout reads of a pod; the facts aside."""
    pod: Pod = subject.pod
    spec, metadata = pod.spec, pod.metadata
    return (
        metadata.labels, spec.runtime_class_name, spec.priority_class_name, subject.owners,
        metadata.name, metadata.generate_name, subject.namespace,
        [_of(container) for container in (*spec.containers, *spec.init_containers)], len(spec.containers),
    )  # fmt: skip


def _of(container: Container) -> tuple[object, ...]:
    return container.name, container.image, container.restart_policy


def _left_out(policy: PodPolicy) -> Left:
    reason = reasons.NOT_IN_ROLLOUT(f"rolled out to {policy.spec.rollout}% of owners")
    return Left(field="", policy=policy.name, reason=reason)
