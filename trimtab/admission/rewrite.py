"""How would this manifest look if its author had written what we decided?

Our changes, without what the API server fills in by itself and without our marker, written into the manifest as it
was read: so that admitting the result again changes nothing. The mapping is edited in place, which keeps the order
of its keys (and its comments, where the reader keeps them).
"""

from collections.abc import MutableMapping, MutableSequence
from itertools import pairwise
from typing import Any

from trimtab.admission.patch import Operation, plain
from trimtab.admission.preview import Preview
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.resources import limits_of, requests_of
from trimtab.cluster.yaml_text import Path
from trimtab.policy.marker import ANNOTATION

Manifest = MutableMapping[str, Any]


def rewrite(manifest: Manifest, path: Path, preview: Preview) -> None:
    """Write what we decided into the pod (or pod template) at `path` of the manifest."""
    target: Any = manifest
    for step in path:
        target = target[step]
    for seen, call in zip(preview.seen, preview.calls, strict=True):
        for operation in call.operations:
            _write(target, operation, seen, call.decision.pod)


def _write(target: Manifest, operation: Operation, before: Pod, after: Pod) -> None:
    steps = [step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:]]
    if steps[:1] == ["spec"] and steps[1] in ("containers", "initContainers"):
        _resources(target["spec"][steps[1]], int(steps[2]), steps[1], after)
    elif steps[:2] == ["spec", "tolerations"] and operation["op"] == "remove" and len(steps) == 3:
        _forget(target["spec"].get("tolerations") or [], plain(before)["spec"]["tolerations"][int(steps[2])])
    elif steps[:2] == ["metadata", "annotations"]:
        _annotations(target, steps, operation)
    else:
        _set(target, steps, operation)


def _resources(containers: MutableSequence[Manifest], index: int, part: str, after: Pod) -> None:
    """Requests and limits of cpu and memory as decided: a request that only stood by defaulting is written out."""
    container = (after.spec.containers if part == "containers" else after.spec.init_containers)[index]
    written = containers[index]
    for side, found in (("requests", requests_of(container.resources)), ("limits", limits_of(container.resources))):
        for resource in ("cpu", "memory"):
            _amount(written, side, resource, found.get(resource))


def _amount(container: Manifest, side: str, resource: str, value: Any) -> None:
    if not container.get("resources"):
        container["resources"] = {}
    resources = container["resources"]
    amounts = resources.get(side) or {}
    if value is not None and amounts.get(resource) != value:
        amounts[resource] = value
        resources[side] = amounts
    elif value is None and resource in amounts:
        del amounts[resource]
        if not amounts:
            del resources[side]


def _forget(items: MutableSequence[Any], item: Any) -> None:
    """Remove an item by its value: the server may have appended others to what the author wrote."""
    for index, found in enumerate(items):
        if dict(found) == item:
            del items[index]
            return


def _annotations(target: Manifest, steps: list[str], operation: Operation) -> None:
    if len(steps) == 2:
        for key, value in (operation.get("value") or {}).items():
            _annotations(target, [*steps, key], {"op": "add", "value": value})
    elif steps[2] != ANNOTATION:
        _set(target, steps, operation)


def _set(target: Any, steps: list[str], operation: Operation) -> None:
    """Like the operation, but parents that only the server had filled are made, and what is gone may be gone."""
    for step, following in pairwise(steps):
        target = _child(target, step, [] if following == "-" else {})
    last = steps[-1]
    if operation["op"] == "remove":
        if isinstance(target, MutableMapping):
            target.pop(last, None)
        elif int(last) < len(target):
            del target[int(last)]
    elif last == "-":
        target.append(operation["value"])
    elif isinstance(target, MutableSequence):
        target[int(last)] = operation["value"]
    else:
        target[last] = operation["value"]


def _child(parent: Any, step: str, empty: Any) -> Any:
    if isinstance(parent, MutableSequence):
        return parent[int(step)]
    if parent.get(step) is None:
        parent[step] = empty
    return parent[step]
