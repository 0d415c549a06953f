"""The mark of a namespace that pauses Trimtab."""

from collections.abc import Iterable

from trimtab.cluster.api.core import Namespace
from trimtab.cluster.api.meta import Metadata, value_or

PAUSED_MARK = "trimtab.dev/paused"
"""A label or annotation of a namespace. Any value but `false` pauses Trimtab."""


def pause_reason(metadata: Metadata) -> str:
    """Returns a sentence that says which label or annotation of the namespace pauses Trimtab, or an empty string if
    none does."""
    # Both are read: in an emergency, a person may use `kubectl label` or `kubectl annotate`.
    for marks in (value_or(metadata.labels, {}), value_or(metadata.annotations, {})):
        if PAUSED_MARK in marks and marks[PAUSED_MARK].lower() != "false":
            return f"namespace {metadata.name} has the annotation {PAUSED_MARK}: {marks[PAUSED_MARK]}"
    return ""


def pause_reason_in(namespaces: Iterable[Namespace], name: str) -> str:
    """Returns a sentence that says which label or annotation of this namespace pauses Trimtab, or an empty string if
    none does, or if the namespace is missing."""
    return next((pause_reason(namespace.metadata) for namespace in namespaces if namespace.metadata.name == name), "")
