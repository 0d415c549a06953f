"""What does an annotation that means "leave it" say?

`true` says so, `false` says the contrary. What is neither is not understood, and what we don't understand keeps a pod
where it is: somebody meant something by it. (Karpenter takes a malformed `do-not-disrupt` for none, and the cluster
autoscaler only knows `true`. A wrong guess costs them a restart, too; here it is no guess.)
"""

from trimtab.cluster.reason import Code, Reason
from trimtab.compaction.reasons import MISREAD


def leave(whose: str, key: str, value: str | None, code: Code) -> Reason | None:
    """Why it is left alone; None where nothing is said, or `false`."""
    if value is None or value == "false":
        return None
    if value == "true":
        return code(f"{whose} says {key}: {value}")
    return misread(whose, key, value)


def misread(whose: str, key: str, value: str) -> Reason:
    return MISREAD(f"{whose} says {key}: {value[:40]!r}, which we do not understand")
