"""Is this patch safe to send?

A patch that does not apply, or leaves an invalid pod, blocks the pod even under `failurePolicy: Ignore`. So each one
is tried before it goes out, on the pod as far as we read it: what our shapes do not name no patch of ours touches.
"""

from collections.abc import Callable

import msgspec

from trimtab.admission.apiserver import limitranger, quota, validation
from trimtab.admission.apiserver.outcome import Refused
from trimtab.admission.patch import CannotApply, Operation, apply_in_place, plain
from trimtab.cluster.api.pod import Pod
from trimtab.policy.facts import Facts


def problem(
    before: Pod,
    after: Pod,
    operations: tuple[Operation, ...],
    decide_again: Callable[[Pod], Pod],
    facts: Facts,
    namespace: str,
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
    refusal = _refusal(after, facts, namespace)
    if refusal is not None and _refusal(before, facts, namespace) is None:
        return f"the API server would refuse it: {refusal.message}"
    return None


def _refusal(pod: Pod, facts: Facts, namespace: str) -> Refused | None:
    """What validation, LimitRanger or a quota say of the pod once LimitRanger has put its defaults back."""
    for step in (limitranger.admit, validation.validate, limitranger.validate, quota.validate):
        found = step(pod, facts, namespace)
        if isinstance(found, Refused):
            return found
        pod = found
    return None
