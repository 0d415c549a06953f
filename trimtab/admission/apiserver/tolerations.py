"""Which tolerations are left when a class's join a pod's?

`MergeTolerations` (pkg/util/tolerations/tolerations.go, 1.36). Its idea of "covers" is narrower than what a toleration
means: one without operator covers `operator: Equal`, not the other way round.
"""

from trimtab.cluster.api.pod import Toleration


def merge(first: tuple[Toleration, ...], second: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    """Both, in order, without any that another one covers; of equal ones the first stays. Also among the pod's own."""
    every = first + second
    merged: list[Toleration] = []
    for place, one in enumerate(every):
        later = (t for t in every[place + 1 :] if t != one)
        if not any(_covers(other, one) for other in (*merged, *later)):
            merged.append(one)
    return tuple(merged)


def _covers(a: Toleration, b: Toleration) -> bool:
    if a == b:
        return True
    if a.key != b.key and not (a.key == "" and a.operator == "Exists"):
        return False
    if a.effect not in ("", b.effect) or not _as_long(a, b):
        return False
    if a.operator == "Exists":
        return True
    return a.operator in ("", "Equal") and b.operator == "Equal" and a.value == b.value


def _as_long(a: Toleration, b: Toleration) -> bool:
    if a.effect != "NoExecute" or not isinstance(a.toleration_seconds, int):
        return True
    return isinstance(b.toleration_seconds, int) and b.toleration_seconds <= a.toleration_seconds
