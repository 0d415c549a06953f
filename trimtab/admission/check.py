"""Is this patch safe to send?

A patch that does not apply, or leaves an invalid pod, blocks the pod even under `failurePolicy: Ignore`. So each one
is tried before it goes out, on the pod as far as we read it: what our shapes do not name no patch of ours touches.
"""

from collections.abc import Callable

import msgspec

from trimtab.admission.apiserver import limitranger, priority, quota, runtimeclass, validation
from trimtab.admission.apiserver.outcome import Refused
from trimtab.admission.patch import CannotApply, Operation, apply_in_place, plain
from trimtab.cluster.api.pod import Pod
from trimtab.policy.facts import Facts
from trimtab.policy.subject import DEFAULT_TERMS, Terms


def problem(
    before: Pod,
    after: Pod,
    operations: tuple[Operation, ...],
    decide_again: Callable[[Pod], Pod],
    facts: Facts,
    namespace: str,
    terms: Terms = DEFAULT_TERMS,
) -> str | None:
    """Why the patch must not be sent; None: it is sound.

    - applied to the pod that came, it gives exactly the pod that was decided;
    - deciding again on that pod changes nothing;
    - what the API server would refuse it for, it would have refused before us too: also in the pod as it will be
      stored if our second call never comes.
    """
    try:
        applied = msgspec.convert(apply_in_place(plain(before), operations), Pod)
    except (CannotApply, msgspec.ValidationError) as error:
        return f"the patch does not apply: {error}"
    if applied != after:
        return "the patch does not give the pod that was decided"
    again = decide_again(after)
    if again != after:
        return "deciding again would change the pod once more"
    return refused_for_it(before, after, facts, namespace, terms)


def refused_for_it(before: Pod, after: Pod, facts: Facts, namespace: str, terms: Terms) -> str | None:
    """What the API server would refuse the pod for, and would not have without us; None: nothing."""
    refusal = _refusal(after, facts, namespace, terms)
    if refusal is not None and _refusal(before, facts, namespace, terms) is None:
        return f"the API server would refuse it: {refusal.message}"
    return None


_STEPS = (
    limitranger.admit, priority.admit, runtimeclass.admit,
    validation.validate, limitranger.validate, runtimeclass.validate, quota.validate,
)  # fmt: skip
"""What the API server does after us and may refuse the pod in, in its order."""
_OF_CLASSES = (runtimeclass.admit, runtimeclass.validate)


def _refusal(pod: Pod, facts: Facts, namespace: str, terms: Terms) -> Refused | None:
    """What the server's own steps after us say of the pod: what they fill in counts, too (a class's overhead)."""
    for step in _STEPS:
        if step in _OF_CLASSES and terms.overhead != "server":
            continue
        found = step(pod, facts, namespace)
        if isinstance(found, Refused):
            return found
        pod = found
    return None
