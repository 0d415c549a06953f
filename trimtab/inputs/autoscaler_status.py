"""The cluster autoscalers of a snapshot: their statuses, the arguments of their processes, and notes about both."""

from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.cluster.autoscaler_processes import MARKS_OF_PROCESSES, Processes, autoscaler_arguments
from trimtab.cluster.cluster_autoscaler import Autoscaler, autoscaler_from_flags
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.several_autoscalers import contested_groups, join_autoscalers, read_statuses
from trimtab.cluster.timestamps import Seconds
from trimtab.cluster.yaml_documents import Document

_MARKS = tuple(mark.encode() for mark in (*MARKS_OF_PROCESSES, "\\u"))
"""Texts of which the text of every object with an autoscaler contains one. With an escape in it, a name may be written
in another way."""


def read_autoscaler(
    inventory: Inventory, documents: Sequence[Document], flags: Processes, now: Seconds | None
) -> tuple[Autoscaler | None, list[str]]:
    """Returns the state of the cluster autoscaler, from the status ConfigMap in the snapshot and from `flags`, with
    notes.

    Returns None if the snapshot has no readable status and `flags` is empty. Flags that are not given are read from the
    autoscaler's Pods and Deployments in the snapshot.
    """
    reading = read_statuses(inventory.config_maps, list(find_autoscaler_arguments(documents)), flags)
    autoscaler = reading.autoscaler
    notes = [
        f"the status of a cluster autoscaler cannot be parsed, so it is ignored: {one}" for one in reading.unreadable
    ]
    if autoscaler is None:
        if flags and not notes:
            notes.append(
                "the snapshot contains no status of the cluster autoscaler, so Trimtab assumes that the autoscaler "
                "is healthy and removes no node"
            )
            return join_autoscalers([autoscaler_from_flags(arguments, now) for arguments in flags]), notes
        return None, notes
    notes += _autoscaler_notes(autoscaler)
    if reading.without_flags:
        owner = f" of {', '.join(reading.without_flags)}" if autoscaler.members else ""
        notes.append(
            f"the cluster autoscaler's own flags{owner} are not in the snapshot (a capture contains no command lines), "
            "so Trimtab assumes its defaults; set the flags with --autoscaler-flags"
        )
    return autoscaler, notes


def _autoscaler_notes(autoscaler: Autoscaler) -> list[str]:
    if not autoscaler.members:
        return [
            f"according to its status, the cluster autoscaler is {'healthy' if autoscaler.healthy else 'not healthy'}"
        ]
    states = [f"that of {one.name} is {'healthy' if one.healthy else 'not healthy'}" for one in autoscaler.members]
    return [
        f"{len(states)} cluster autoscalers report a status: {', '.join(states)}",
        *(
            f"the statuses {', '.join(names)} report the same node group {group}, so the more careful of them counts"
            for group, names in contested_groups(autoscaler).items()
        ),
    ]


def find_autoscaler_arguments(documents: Sequence[Document]) -> Iterator[tuple[str, ...]]:
    """Yields the arguments of every container that runs the cluster autoscaler."""
    for document in documents:
        # To look at the text is many times as fast as to decode every pod of a large cluster for this question alone.
        if document.text is not None and not any(map(bytes(document.text).__contains__, _MARKS)):
            continue
        for container in _pod_containers(document.value):
            words = [*_filter_texts(container.get("command")), *_filter_texts(container.get("args"))]
            image = container.get("image")
            arguments = autoscaler_arguments(image if isinstance(image, str) else "", words)
            if arguments is not None:
                yield arguments


def _pod_containers(value: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(value, dict) or value.get("kind") not in ("Pod", "Deployment"):
        return
    spec = value.get("spec")
    if value["kind"] == "Deployment":
        template = spec.get("template") if isinstance(spec, dict) else None
        spec = template.get("spec") if isinstance(template, dict) else None
    containers = spec.get("containers") if isinstance(spec, dict) else None
    yield from (c for c in (containers if isinstance(containers, list) else ()) if isinstance(c, dict))


def _filter_texts(value: Any) -> list[str]:
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []
