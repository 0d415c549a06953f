"""What does the snapshot tell of the cluster autoscaler: its status, its flags?"""

from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.cluster.api.meta import get
from trimtab.cluster.autoscaler import NAME, UPDATED, Autoscaler, by_flags, read
from trimtab.cluster.documents import Document
from trimtab.cluster.inventory import Inventory
from trimtab.cluster.moment import Seconds
from trimtab.cluster.reason import Unreadable

BINARY = "cluster-autoscaler"


def seen(
    inventory: Inventory, documents: Sequence[Document], given: Sequence[str], at: Seconds | None
) -> tuple[Autoscaler | None, list[str]]:
    """The autoscaler as the snapshot shows it and as flags were `given`, with notes; None where nothing is known."""
    status = next((found for found in inventory.config_maps if found.metadata.name == NAME), None)
    if status is None:
        note = "only the autoscaler's flags are known: it is taken for healthy and quiet"
        return (by_flags(given, at), [note]) if given else (None, [])
    updated = get(status.metadata.annotations, {}).get(UPDATED, "")
    arguments: Sequence[str] | None = list(given) or next(_arguments(documents), None)
    found = read(status.data.get("status", ""), updated, arguments or ())
    if isinstance(found, Unreadable):
        return None, [f"the cluster autoscaler's status cannot be understood and is left out: {found}"]
    notes = [f"the cluster autoscaler's status was read: {'healthy' if found.healthy else 'not healthy'}"]
    if arguments is None:
        notes.append(
            "the cluster autoscaler's own flags are not in the snapshot (a capture leaves command lines out): "
            "its defaults are taken; --autoscaler-flags tells them"
        )
    return found, notes


def _arguments(documents: Sequence[Document]) -> Iterator[list[str]]:
    """Of every container that runs its binary."""
    for document in documents:
        for container in _containers(document.value):
            words = [*_texts(container.get("command")), *_texts(container.get("args"))]
            if any(word.rpartition("/")[2] == BINARY for word in words):
                yield [word for word in words if word.rpartition("/")[2] != BINARY]


def _containers(value: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(value, dict) or value.get("kind") not in ("Pod", "Deployment"):
        return
    spec = value.get("spec")
    if value["kind"] == "Deployment":
        template = spec.get("template") if isinstance(spec, dict) else None
        spec = template.get("spec") if isinstance(template, dict) else None
    containers = spec.get("containers") if isinstance(spec, dict) else None
    yield from (c for c in (containers if isinstance(containers, list) else ()) if isinstance(c, dict))


def _texts(value: Any) -> list[str]:
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []
