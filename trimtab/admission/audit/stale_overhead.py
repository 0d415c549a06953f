"""Compares the stored overhead of pods with their RuntimeClass, determines which component fills it in, and sums it up
per class.

If the RuntimeClass admission plugin is on, a pod with a class that has overhead cannot be stored without that overhead
or with another one (plugin/pkg/admission/runtimeclass). So if a pod is younger than the last change of its class and
has no overhead, the plugin is off; if a pod has overhead that Trimtab did not write, the plugin is on.

For each class, this module also calculates what its overhead costs, and whether any node accepts its pods.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from trimtab.admission.audit import reasons
from trimtab.admission.audit.causes import Moment
from trimtab.admission.audit.original_pod import PodTemplateKey
from trimtab.cluster.api.core import RuntimeClass
from trimtab.cluster.api.meta import ResourceList, value_or
from trimtab.cluster.node_shapes import NodeShape
from trimtab.cluster.overhead_writer import BY_SERVER, BY_WEBHOOK, OverheadWriter
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import NotYet, Reason
from trimtab.cluster.resources import is_same_list, scheduler_amounts
from trimtab.policy.actions.overhead import FIELD, format_amounts
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.reasons import OVERHEAD_MISSING
from trimtab.scheduling.node_filters import first_untolerated_taint


def explain_overhead(
    template_key: PodTemplateKey, created: Moment | None, runtime_class: RuntimeClass | None, since: Moment | None
) -> Reason | None:
    """Returns what is wrong with the stored overhead; None if nothing is, or if the class does not exist.

    `since` is when the class was last written, or None if that is not known.
    """
    if runtime_class is None:
        return None
    name = runtime_class.metadata.name
    stored, defined = value_or(template_key.pod.spec.overhead, {}), runtime_class.overhead.pod_fixed
    if is_same_list(defined, stored):
        return None
    if not stored and not _is_older_than_class(created, since):
        return OVERHEAD_MISSING(f"the pod has no overhead, but RuntimeClass {name} defines {format_amounts(defined)}")
    return reasons.OVERHEAD_STALE(
        f"the pod has overhead {format_amounts(stored) or 'none'}, but RuntimeClass {name} now defines "
        f"{format_amounts(defined) or 'none'}"
    )


LAG = 3.0
"""The number of seconds by which compared times may be wrong. Timestamps are whole seconds, and an API server notices
changes of a class a little late."""


def _is_older_than_class(created: Moment | None, since: Moment | None) -> bool:
    """Returns whether the class was changed after the pod was created, or at about the same time; False if either time
    is unknown."""
    return created is not None and since is not None and created < since + LAG


@dataclass(frozen=True, slots=True)
class OverheadExample:
    """Which component fills in overhead, and a pod that shows it."""

    by: OverheadWriter
    namespace: str
    pod: str
    created: Moment


Named = tuple[PodTemplateKey, str, Moment | None]
"""(the template that pods share, the name of one of the pods, its creation time)."""


def detect_overhead_writer(
    pods: Iterable[Named], classes: Mapping[str, RuntimeClass], since: Mapping[str, Moment]
) -> OverheadExample | NotYet:
    """Returns which component fills in overhead, according to the youngest pod that shows it: the flags of the API
    server may have changed since older pods were created."""
    examples = [example for pod in pods if (example := _overhead_example(*pod, classes, since)) is not None]
    if not examples:
        return NotYet(
            reason=reasons.NO_EVIDENCE("no running pod shows whether RuntimeClass admission is on"),
            have="none",
            need="at least one pod that names a RuntimeClass with overhead",
        )
    return max(examples, key=lambda example: (example.created, example.namespace, example.pod))


def _overhead_example(
    template_key: PodTemplateKey,
    name: str,
    created: Moment | None,
    classes: Mapping[str, RuntimeClass],
    since: Mapping[str, Moment],
) -> OverheadExample | None:
    runtime_class = classes.get(value_or(template_key.pod.spec.runtime_class_name, ""))
    if runtime_class is None or not runtime_class.overhead.pod_fixed or created is None:
        return None
    writer: OverheadWriter
    if value_or(template_key.pod.spec.overhead, {}):
        if template_key.marker is not None and any(FIELD in fields for fields in template_key.marker.by.values()):
            return None  # Trimtab wrote it; the plugin, if it is on, only agreed
        writer = BY_SERVER
    elif _is_older_than_class(created, since.get(runtime_class.metadata.name)):
        return None  # the pod is older than the class's change: the class may have had no overhead then
    else:
        writer = BY_WEBHOOK
    return OverheadExample(writer, template_key.namespace, name, created)


def check_overhead_setting(configured: OverheadWriter, example: OverheadExample | NotYet) -> Reason | None:
    """Returns why the setting `overhead` is wrong; None if it is right, or if there is no pod from which this can be
    seen."""
    if isinstance(example, NotYet) or example.by == configured:
        return None
    pod = f"{example.namespace}/{example.pod}"
    if example.by == BY_SERVER:
        return reasons.SETTING_WRONG(
            f"TRIMTAB_OVERHEAD is webhook, but the API server set the overhead of pod {pod} (set it to server)"
        )
    return reasons.SETTING_WRONG(
        f"TRIMTAB_OVERHEAD is server, but the API server did not set the overhead of pod {pod} (set it to webhook)"
    )


NoNodes = Literal["no-label", "cordoned", "tainted", "may-come"]
"""Why no node accepts the pods of a class. `no-label`: no node has the labels that the class selects. `cordoned`: the
nodes with these labels are cordoned. `tainted`: the nodes have taints that the class does not tolerate, so each pod
must tolerate them itself. `may-come`: no node has the labels, but an autoscaler may add one."""


@dataclass(frozen=True, slots=True)
class ClassOverhead:
    """The running pods of one RuntimeClass together. Classes without overhead are included."""

    pods: int
    millicores: int
    """The cpu in millicores that the scheduler reserves for overhead, in addition to the containers' requests."""
    memory_bytes: int
    node_kinds: int | None
    """The number of node shapes that the class's node selector allows and that accept pods; None if nodes or the class
    are not known. If it is 0, the pods of the class stay pending until such a node is added."""
    no_nodes: NoNodes | None = None
    """Why no node accepts pods of the class; None if one does, or if nodes are not known."""


def class_overheads(pods: Iterable[tuple[str, ResourceList, int]], facts: ClusterFacts) -> dict[str, ClassOverhead]:
    """Returns RuntimeClass → its overhead. `pods` has, for each pod template, the class, the stored overhead, and the
    number of pods."""
    sums: dict[str, tuple[int, int, int]] = dict.fromkeys(facts.runtime_classes, (0, 0, 0))
    for name, overhead, count in pods:
        sums_so_far = sums.get(name, (0, 0, 0))
        cpu, memory = overhead_of(overhead)
        sums[name] = (sums_so_far[0] + count, sums_so_far[1] + cpu * count, sums_so_far[2] + memory * count)
    return {
        name: ClassOverhead(*total, *_allowed_nodes(facts.runtime_classes.get(name), facts))
        for name, total in sums.items()
    }


def overhead_of(overhead: ResourceList) -> tuple[int, int]:
    """Returns (millicores, bytes) of an overhead; zeros if it cannot be parsed."""
    try:
        parsed = scheduler_amounts(overhead)
    except NotAQuantity:
        return 0, 0
    return parsed.get("cpu", 0), parsed.get("memory", 0)


def _allowed_nodes(runtime_class: RuntimeClass | None, facts: ClusterFacts) -> tuple[int | None, NoNodes | None]:
    """Returns the number of node shapes that the class allows, and why none of them accepts its pods. A node shape is
    what nodes have in common: labels, taints and amounts."""
    if runtime_class is None or "Node" not in facts.listed_kinds:
        return None, None
    selector, nodes = value_or(runtime_class.scheduling.node_selector, {}), facts.nodes
    allowed = [shape for shape in nodes.shapes if _is_selected(selector, shape)]
    if not allowed:
        if any(_is_selected(selector, shape) for shape in nodes.closed):
            return 0, "cordoned"
        return 0, "may-come" if nodes.may_grow else "no-label"
    is_open = any(
        first_untolerated_taint(runtime_class.scheduling.tolerations, shape.taints) is None for shape in allowed
    )
    return len(allowed), None if is_open else "tainted"


def _is_selected(selector: Mapping[str, str], shape: NodeShape) -> bool:
    return all(shape.labels.get(key) == value for key, value in selector.items())
