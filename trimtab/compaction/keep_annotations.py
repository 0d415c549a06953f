"""Annotations that keep a pod or node: what their values mean.

The value `true` keeps it, and `false` does not. Any other value is reported as unreadable
and keeps it too, because its author intended something. (Karpenter ignores a malformed `do-not-disrupt`, and the
cluster autoscaler only knows `true`; but a wrong guess costs an unwanted restart.)
"""

from trimtab.cluster.pool import KEEP_ANNOTATION, RENAMED_KEEP
from trimtab.cluster.reason import Code, Reason
from trimtab.compaction.reasons import MISREAD


def keep_reason(subject: str, key: str, value: str | None, code: Code) -> Reason | None:
    """Returns the reason for which an annotation keeps a pod or node, or None if it is absent or `false`.

    `subject` is the pod or node as the message names it, for example "pod web/a".
    """
    if value is None or value == "false":
        return None
    if key == RENAMED_KEEP:
        return MISREAD(f"{subject} has the annotation {key}, which now has another name: use {KEEP_ANNOTATION}")
    if value == "true":
        return code(f"{subject} has the annotation {key}: {value}")
    return unreadable_reason(subject, key, value)


def unreadable_reason(subject: str, key: str, value: str) -> Reason:
    """Returns the reason for an annotation with a value that is neither true, false nor a duration."""
    return MISREAD(
        f"{subject} has the annotation {key} with the value {value[:40]!r}, which Trimtab does not understand"
    )
