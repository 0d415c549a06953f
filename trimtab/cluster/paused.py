"""The one switch that stops every change: `trimtab.dev/paused` on our own namespace."""

from collections.abc import Iterable

from trimtab.cluster.api.meta import Metadata, get
from trimtab.cluster.api.rules import Namespace

PAUSED = "trimtab.dev/paused"
"""Label or annotation; whatever it says pauses, only `false` does not."""


def paused(metadata: Metadata) -> str:
    """How the switch is set, in words; empty where nothing is paused."""
    for where in (get(metadata.labels, {}), get(metadata.annotations, {})):
        if PAUSED in where and where[PAUSED].lower() != "false":
            return f"namespace {metadata.name} says {PAUSED}: {where[PAUSED]}"
    return ""


def paused_in(namespaces: Iterable[Namespace], name: str) -> str:
    """The same of the namespace so named; empty where it is not among them."""
    return next((paused(found.metadata) for found in namespaces if found.metadata.name == name), "")
