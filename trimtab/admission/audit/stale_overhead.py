"""Is the stored overhead the class's? And who fills it in: the API server, or nobody?

With RuntimeClass admission on, a pod that names a class with overhead cannot be stored without it, nor with another
one (plugin/pkg/admission/runtimeclass). So a pod younger than its class's last change, whose overhead is
missing, shows that the plugin is off; one whose overhead is there though we did not write it shows that it is on.

What do RuntimeClasses cost in overhead, and is there a node that their pods may run on?
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from trimtab.admission.audit import reasons
from trimtab.admission.audit.causes import Moment
from trimtab.admission.audit.original_pod import PodTemplateKey
from trimtab.cluster.api.core import RuntimeClass
from trimtab.cluster.api.meta import ResourceList, get
from trimtab.cluster.node_shapes import NodeShape
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import NotYet, Reason
from trimtab.cluster.resources import amounts, same
from trimtab.policy.actions.overhead import FIELD, shown
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.pod_context import OverheadBy
from trimtab.policy.reasons import OVERHEAD_MISSING
from trimtab.scheduling.node_filters import untolerated


def finding(
    alike: PodTemplateKey, created: Moment | None, found: RuntimeClass | None, since: Moment | None
) -> Reason | None:
    """What is wrong with the stored overhead; None: nothing, or the class is not there to tell.

    since: when the class was last written, where that is known.
    """
    if found is None:
        return None
    name = found.metadata.name
    stored, defined = get(alike.pod.spec.overhead, {}), found.overhead.pod_fixed
    if same(defined, stored):
        return None
    if not stored and not _older(created, since):
        return OVERHEAD_MISSING(f"carries no overhead, RuntimeClass {name} defines {shown(defined)}")
    return reasons.OVERHEAD_STALE(
        f"carries overhead {shown(stored) or 'none'}, RuntimeClass {name} now defines {shown(defined) or 'none'}"
    )


LAG = 3.0
"""Seconds: times are whole ones, and an API server's own view of the classes is a little late."""


def _older(created: Moment | None, since: Moment | None) -> bool:
    """Was the class changed after the pod was made, or about then? Not where either is unknown."""
    return created is not None and since is not None and created < since + LAG


@dataclass(frozen=True, slots=True)
class OverheadExample:
    """Who fills overhead in, and which pod shows it."""

    by: OverheadBy
    namespace: str
    pod: str
    created: Moment


Named = tuple[PodTemplateKey, str, Moment | None]
"""Pods alike, one of their names, and when it was created."""


def who(
    pods: Iterable[Named], classes: Mapping[str, RuntimeClass], since: Mapping[str, Moment]
) -> OverheadExample | NotYet:
    """What the youngest pod shows that shows anything: the API server's flags may have changed since the others."""
    shown_by = [found for pod in pods if (found := _shows(*pod, classes, since)) is not None]
    if not shown_by:
        return NotYet(
            reason=reasons.NO_EVIDENCE("no running pod shows whether RuntimeClass admission is on"),
            have="none",
            need="one pod that names a RuntimeClass with overhead",
        )
    return max(shown_by, key=lambda found: (found.created, found.namespace, found.pod))


def _shows(
    alike: PodTemplateKey,
    name: str,
    created: Moment | None,
    classes: Mapping[str, RuntimeClass],
    since: Mapping[str, Moment],
) -> OverheadExample | None:
    found = classes.get(get(alike.pod.spec.runtime_class_name, ""))
    if found is None or not found.overhead.pod_fixed or created is None:
        return None
    by: Literal["server", "webhook"]
    if get(alike.pod.spec.overhead, {}):
        if alike.marker is not None and any(FIELD in fields for fields in alike.marker.by.values()):
            return None  # we wrote it; the plugin, where it is on, only agreed
        by = "server"
    elif _older(created, since.get(found.metadata.name)):
        return None  # older than the class's change: the class may have had none then
    else:
        by = "webhook"
    return OverheadExample(by, alike.namespace, name, created)


def setting(terms: OverheadBy, shown_by: OverheadExample | NotYet) -> Reason | None:
    """Is the setting `overhead` wrong? None: it is right, or nothing shows it."""
    if isinstance(shown_by, NotYet) or shown_by.by == terms:
        return None
    pod = f"{shown_by.namespace}/{shown_by.pod}"
    if shown_by.by == "server":
        return reasons.SETTING_WRONG(f"overhead: webhook, but the API server filled in that of pod {pod}: say server")
    return reasons.SETTING_WRONG(f"overhead: server, but nobody filled in that of pod {pod}: say webhook")


NoNodes = Literal["no-label", "cordoned", "tainted", "may-come"]
"""Why no node takes pods of a class. `no-label`: no node has the labels that the class selects. `cordoned`: those that
have them take no pods. `tainted`: they have taints that the class does not tolerate, so each pod must by itself.
`may-come`: no node has the labels, and an autoscaler may make one."""


@dataclass(frozen=True, slots=True)
class ClassOverhead:
    """The running pods of one RuntimeClass together. Pods of classes without overhead count, too."""

    pods: int
    millicores: int
    """Of overhead, which the scheduler reserves beside what the containers ask for."""
    memory_bytes: int
    node_kinds: int | None
    """Kinds of nodes that the class's node selector allows and that take pods; None where nodes or the class are not
    known. 0: its pods wait until somebody adds such a node."""
    no_nodes: NoNodes | None = None
    """Why no node takes its pods by what the class says; None where one does, or nodes are not known."""


def class_overheads(pods: Iterable[tuple[str, ResourceList, int]], facts: ClusterFacts) -> dict[str, ClassOverhead]:
    """RuntimeClass → its overhead. pods: the class, the stored overhead, and how many pods are alike."""
    sums: dict[str, tuple[int, int, int]] = dict.fromkeys(facts.runtime_classes, (0, 0, 0))
    for name, overhead, count in pods:
        before = sums.get(name, (0, 0, 0))
        cpu, memory = overhead_of(overhead)
        sums[name] = (before[0] + count, before[1] + cpu * count, before[2] + memory * count)
    return {
        name: ClassOverhead(*total, *_nodes(facts.runtime_classes.get(name), facts)) for name, total in sums.items()
    }


def overhead_of(overhead: ResourceList) -> tuple[int, int]:
    """Millicores and bytes; nothing of what cannot be read."""
    try:
        found = amounts(overhead)
    except NotAQuantity:
        return 0, 0
    return found.get("cpu", 0), found.get("memory", 0)


def _nodes(found: RuntimeClass | None, facts: ClusterFacts) -> tuple[int | None, NoNodes | None]:
    """How many kinds of nodes the class allows, and why none takes its pods."""
    if found is None or "Node" not in facts.known:
        return None, None
    selector, nodes = get(found.scheduling.node_selector, {}), facts.nodes
    allowed = [shape for shape in nodes.shapes if _is_selected(selector, shape)]
    if not allowed:
        if any(_is_selected(selector, shape) for shape in nodes.closed):
            return 0, "cordoned"
        return 0, "may-come" if nodes.may_grow else "no-label"
    is_open = any(untolerated(found.scheduling.tolerations, shape.taints) is None for shape in allowed)
    return len(allowed), None if is_open else "tainted"


def _is_selected(selector: Mapping[str, str], shape: NodeShape) -> bool:
    return all(shape.labels.get(key) == value for key, value in selector.items())
