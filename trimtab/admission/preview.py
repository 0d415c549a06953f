"""What would become of this pod in a cluster: through the API server's two passes, with us in the chain?

The same `judge` that answers reviews is called where the server would call us, so what is shown is what would happen.

How would this manifest look if its author had written what we decided?

Our changes, without what the API server fills in by itself and without our marker, written into the manifest as it
was read: so that admitting the result again changes nothing. The mapping is edited in place, which keeps the order
of its keys (and its comments, where the reader keeps them).
"""

from collections.abc import Callable, MutableMapping, MutableSequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from trimtab.admission.admission_result import AdmissionOutcome, PodDecision, judge
from trimtab.admission.apiserver.admission_chain import admit
from trimtab.admission.apiserver.outcome import PodAdmitted, PodRejected
from trimtab.admission.json_patch import Operation, diff, plain
from trimtab.cluster.api.pod import Container, Pod
from trimtab.cluster.resources import limits_of, requests_of
from trimtab.cluster.yaml_parser import Path
from trimtab.policy.changed_annotation import ANNOTATION, ChangedAnnotation, claimed, text_of
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.pod_changes import FieldChange, FieldKept
from trimtab.policy.pod_context import DEFAULT_TERMS, AdmissionSettings
from trimtab.policy.podpolicy import Policies


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """One pod's way through admission."""

    sent: Pod
    """As its creator sends it."""
    unaided: PodAdmitted | PodRejected
    """What the API server alone would make of it."""
    result: PodAdmitted | PodRejected
    """What it makes of it with us."""
    calls: tuple[PodDecision, ...]
    """What we answered, call by call; none where the server refused the pod before it asked us."""
    seen: tuple[Pod, ...] = ()
    """The pod as each call saw it."""

    @property
    def outcome(self) -> AdmissionOutcome | None:
        """Of the first call; None where there was none."""
        return self.calls[0].outcome if self.calls else None

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The patch of the first call: what the webhook would send."""
        return self.calls[0].operations if self.calls else ()

    @property
    def changes(self) -> tuple[FieldChange, ...]:
        """What we changed, over both calls."""
        return tuple(
            c for call in self.calls if call.outcome is AdmissionOutcome.CHANGED for c in call.decision.changes
        )

    @property
    def left(self) -> tuple[FieldKept, ...]:
        """What we left alone, as the first call saw it, and what only the second noticed (such as missing overhead)."""
        found = dict.fromkeys(self.calls[0].decision.left) if self.calls else {}
        later = {left: None for call in self.calls[1:] for left in call.decision.left if left.loud}
        return tuple({**found, **later})

    @property
    def patch_from_sent(self) -> tuple[Operation, ...]:
        """From what was sent to what is stored; empty where it is refused."""
        return diff(self.sent, self.result.pod) if isinstance(self.result, PodAdmitted) else ()


@dataclass(slots=True)
class _Listening:
    """Our webhook, remembering what it was asked and what it said."""

    judge: Callable[[Pod, ChangedAnnotation | None], PodDecision]
    namespace: str
    calls: list[PodDecision] = field(default_factory=list)
    seen: list[Pod] = field(default_factory=list)

    def __call__(self, pod: Pod) -> Pod:
        # No key is needed for the word of our own first call: it is remembered.
        text, last = text_of(pod), self.calls[-1].decision.pod if self.calls else None
        ours = last is not None and text is not None and text == text_of(last)
        verdict = self.judge(pod, claimed(pod, self.namespace) if ours else None)
        self.seen.append(pod)
        self.calls.append(verdict)
        return verdict.applied(pod)


def preview(
    pod: Pod, policies: Policies, facts: ClusterFacts, namespace: str, terms: AdmissionSettings = DEFAULT_TERMS
) -> Preview:
    """The pod through both passes; a pod we deny is refused with our words."""
    webhook = _Listening(lambda found, marked: judge(found, policies, facts, namespace, terms, marked), namespace)
    filled = terms.overhead == "server"
    unaided = admit(pod, facts, namespace, lambda found: found, runtime_class_admission=filled)
    result = admit(pod, facts, namespace, webhook, runtime_class_admission=filled)
    for call in webhook.calls:
        if call.decision.denied is not None:
            result = PodRejected(403, "trimtab", f"trimtab: {call.decision.denied}")
    return Preview(sent=pod, unaided=unaided, result=result, calls=tuple(webhook.calls), seen=tuple(webhook.seen))


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
        _resources(target["spec"][steps[1]], int(steps[2]), steps[1], before, after)
    elif steps[:2] == ["spec", "tolerations"] and operation["op"] == "remove" and len(steps) == 3:
        _forget(target["spec"].get("tolerations") or [], plain(before)["spec"]["tolerations"][int(steps[2])])
    elif steps[:2] == ["metadata", "annotations"]:
        _annotations(target, steps, operation)
    else:
        _set(target, steps, operation)


def _resources(containers: MutableSequence[Manifest], index: int, part: str, before: Pod, after: Pod) -> None:
    """Requests and limits as decided: of cpu and memory also a request that only stood by defaulting."""
    was, container = (_containers(pod, part)[index] for pod in (before, after))
    written = containers[index]
    for side, amounts_of in (("requests", requests_of), ("limits", limits_of)):
        found, stood = amounts_of(container.resources), amounts_of(was.resources)
        others = sorted(name for name in {*found, *stood} if found.get(name) != stood.get(name))
        for resource in dict.fromkeys(("cpu", "memory", *others)):
            _amount(written, side, resource, found.get(resource))


def _containers(pod: Pod, part: str) -> tuple[Container, ...]:
    return pod.spec.containers if part == "containers" else pod.spec.init_containers


def _amount(container: Manifest, side: str, resource: str, value: Any) -> None:
    resources = container.get("resources") or {}
    amounts = resources.get(side) or {}
    if value is not None and amounts.get(resource) != value:
        amounts[resource] = value
        resources[side] = amounts
        container["resources"] = resources
    elif value is None and resource in amounts:
        del amounts[resource]
        if not amounts:
            del resources[side]
        if not resources:
            del container["resources"]


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
