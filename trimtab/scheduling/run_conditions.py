"""What a node must be so that a pod runs there, beside kube-scheduler's filters.

kube-scheduler compares labels, taints and amounts. Whether the pod then runs is decided by the kubelet and by the
image: the operating system, the architecture and the build of Windows; the handler of the RuntimeClass; the features
of the container runtime that the pod uses; the CSI drivers of its volumes. And some nodes are only for pods that select
them: nodes that are no machines, and edge nodes.

The pod's author decides first: what a node selector, an affinity, a toleration or `spec.os` says about the operating
system or the architecture is taken as it is. Otherwise a pod runs where ready pods of its owner run. A pod of which
nothing shows where it runs may run on every node.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.api.meta import value_or
from trimtab.cluster.api.pod import NodeSelectorTerm
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.measured_use import owner_key
from trimtab.cluster.node import ARCH_LABELS, OS_LABELS, WINDOWS_BUILD_LABEL, HandlerFeature, NodeInfo
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pod import PodInfo, SchedulingRequirements
from trimtab.cluster.reason import Reason
from trimtab.cluster.runtime_needs import NO_RUNTIME_NEEDS
from trimtab.scheduling.node_filters import matches_node_selector
from trimtab.scheduling.reasons import (
    HANDLER_MISSING,
    NODE_FEATURE_MISSING,
    NOT_THE_ARCHITECTURE,
    NOT_THE_SYSTEM,
    ONLY_IF_SELECTED,
    VOLUME_DRIVER_MISSING,
)

WINDOWS = "windows"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConditions:
    """The conditions of one class of pods. An empty set means that every value will do."""

    systems: frozenset[str] = frozenset()
    """The operating systems on which the pods run."""
    architectures: frozenset[str] = frozenset()
    windows_builds: frozenset[str] = frozenset()
    handlers: frozenset[str] = frozenset()
    """The runtime handlers that the node must have; the default handler has an empty name."""
    uses_user_namespace: bool = False
    uses_strict_groups: bool = False
    """Whether the pods have `supplementalGroupsPolicy: Strict`."""
    mounts_recursively: bool = False
    """Whether the pods have a mount with `recursiveReadOnly: Enabled`."""
    declared_features: frozenset[str] = frozenset()
    """The features that the node must declare."""
    drivers: frozenset[str] = frozenset()
    """The CSI drivers that the node must have."""
    preventing_drivers: frozenset[str] = frozenset()
    """Those of them for which kube-scheduler itself chooses only nodes that have the driver."""
    selected_keys: frozenset[str] = frozenset()
    """The labels that show what a node is and that the pods require."""
    selects_only_reserved: bool = False
    """Whether the pods' node selector or affinity matches no ordinary node."""
    ready_platforms: frozenset[str] = frozenset()
    """The platforms of nodes for selecting pods on which ready pods of the owner run."""


ANYWHERE = RunConditions()


def unfit_reason(conditions: RunConditions, node: NodeInfo) -> Reason | None:
    """Returns why a pod with these conditions does not run on the node, or must not be moved to it; None if it runs."""
    if conditions is ANYWHERE:
        return None
    sign = node.nature.reserved_sign
    if sign is not None and not conditions.selects_only_reserved and sign.key not in conditions.selected_keys:
        what = "is no machine" if not node.nature.is_machine else "is an edge node"
        return ONLY_IF_SELECTED(
            f"node {node.name} {what} ({sign.platform}, {sign.evidence}), and the pod does not select such nodes"
        )
    return (
        _platform_reason(conditions, node)
        or _runtime_reason(conditions, node)
        or _driver_reason(conditions.drivers, node)
    )


def is_chosen_by_accident(conditions: RunConditions, node: NodeInfo) -> bool:
    """Returns whether kube-scheduler does harm if it chooses this node: the pods do not run there, or they run on what
    is paid for by the pod, or at the edge, where no ready pod of their owner runs so far."""
    if conditions.preventing_drivers - (node.csi_drivers or frozenset()):
        return False
    reason, sign = unfit_reason(conditions, node), node.nature.reserved_sign
    if reason is None:
        return False
    return reason.code is not ONLY_IF_SELECTED or sign is None or sign.platform not in conditions.ready_platforms


def _platform_reason(conditions: RunConditions, node: NodeInfo) -> Reason | None:
    system, architecture, build = node.operating_system, node.architecture, node.windows_build
    if conditions.systems and system not in conditions.systems:
        return NOT_THE_SYSTEM(
            f"node {node.name} runs {system or 'an unknown operating system'}, and the pod runs on "
            f"{_join(conditions.systems)}"
        )
    if conditions.architectures and architecture not in conditions.architectures:
        return NOT_THE_ARCHITECTURE(
            f"node {node.name} has the architecture {architecture or 'unknown'}, and nothing shows that the pod runs "
            f"on another one than {_join(conditions.architectures)}"
        )
    if conditions.windows_builds and build not in conditions.windows_builds:
        return NOT_THE_SYSTEM(
            f"node {node.name} runs build {build or 'unknown'} of Windows, and the pod runs on "
            f"{_join(conditions.windows_builds)}"
        )
    return None


def _runtime_reason(conditions: RunConditions, node: NodeInfo) -> Reason | None:
    # A kubelet before 1.30 or a runtime that does not report its handlers: then nothing is known, and the RuntimeClass
    # documentation says that every node is assumed to have the handler.
    if node.runtime_handlers is not None:
        missing = sorted(conditions.handlers - node.runtime_handlers.keys())
        if missing:
            return HANDLER_MISSING(f"node {node.name} does not report the runtime handler {missing[0]}")
        used = conditions.handlers or {""} & node.runtime_handlers.keys()
        for feature, is_used, described in (
            (HandlerFeature.USER_NAMESPACES, conditions.uses_user_namespace, "user namespaces (hostUsers: false)"),
            (
                HandlerFeature.RECURSIVE_READ_ONLY_MOUNTS,
                conditions.mounts_recursively,
                "recursive read-only mounts (recursiveReadOnly: Enabled)",
            ),
        ):
            if is_used and not all(feature in node.runtime_handlers[name] for name in used):
                return NODE_FEATURE_MISSING(f"the container runtime of node {node.name} has no {described}")
    undeclared_features = conditions.declared_features - (node.declared_features or frozenset())
    if undeclared_features:
        return NODE_FEATURE_MISSING(f"node {node.name} does not declare the feature {_join(undeclared_features)}")
    if conditions.uses_strict_groups and node.has_strict_groups is False:
        return NODE_FEATURE_MISSING(
            f"the container runtime of node {node.name} does not support supplementalGroupsPolicy: Strict"
        )
    return None


def _driver_reason(drivers: frozenset[str], node: NodeInfo) -> Reason | None:
    missing = sorted(drivers - node.csi_drivers) if node.csi_drivers is not None else sorted(drivers)
    if missing:
        return VOLUME_DRIVER_MISSING(f"the CSI driver {missing[0]} of a volume is not registered on node {node.name}")
    return None


def _join(names: Iterable[str]) -> str:
    return " or ".join(sorted(names))


@dataclass(slots=True)
class RunConditionsReader:
    """Determines the conditions of the pods of one cluster. In a cluster whose nodes are all alike, no pod has any."""

    inventory: Inventory
    mixes_platforms: bool = field(init=False)
    mixes_runtimes: bool = field(init=False)
    partial_drivers: frozenset[str] = field(init=False)
    """The CSI drivers that some nodes have and others lack, and those without which kube-scheduler chooses no node."""
    reserved_keys: frozenset[str] = field(init=False)
    """The labels that show that a node is only for pods that select it."""
    has_reserved_nodes: bool = field(init=False)
    declares_features: bool = field(init=False)
    """Whether any node declares its features."""
    _nodes: dict[str, NodeInfo] = field(init=False)
    _ready_nodes: dict[OwnerKey, tuple[NodeInfo, ...]] | None = None
    """Owner → one node of each kind on which its ready pods run."""
    _only_reserved: dict[int, bool] = field(default_factory=dict)
    _conditions: dict[RunConditions, RunConditions] = field(default_factory=dict)
    """Equal conditions are one object, so that they can be compared by identity."""
    _conditions_by_key: dict[object, RunConditions] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nodes = self.inventory.nodes
        self._nodes = {node.name: node for node in nodes}
        needs = {pod.requirements.runtime_needs for pod in self.inventory.pods} - {NO_RUNTIME_NEEDS}
        platforms, runtimes = {_platform_of(node) for node in nodes}, {_runtime_of(node) for node in nodes}
        systems = {system for system, _, _ in platforms if system}
        # Also where all nodes are alike, a pod may say that it needs something else.
        self.mixes_platforms = len(platforms) > 1 or any({one.operating_system} - {""} - systems for one in needs)
        self.mixes_runtimes = len(runtimes) > 1 or bool(needs and runtimes - {_UNREPORTED})
        self.declares_features = any(node.declared_features is not None for node in nodes)
        registered = [node.csi_drivers for node in nodes]
        listed = frozenset[str]().union(*(drivers for drivers in registered if drivers is not None))
        common = frozenset[str](listed).intersection(*(drivers or frozenset() for drivers in registered))
        # A snapshot without any CSINode says nothing about drivers.
        is_known = any(drivers is not None for drivers in registered)
        self.partial_drivers = (listed - common) | ((self.inventory.preventing_drivers - common) if is_known else _ANY)
        signs = [sign for node in nodes if (sign := node.nature.reserved_sign) is not None]
        self.has_reserved_nodes = bool(signs)
        self.reserved_keys = frozenset(sign.key for sign in signs if sign.key)

    @property
    def is_needed(self) -> bool:
        """Whether the nodes differ in what decides where pods run."""
        return bool(self.mixes_platforms or self.mixes_runtimes or self.partial_drivers or self.has_reserved_nodes)

    def node_key(self, node: NodeInfo) -> object:
        """Returns a key that is equal for nodes for which `unfit_reason` gives the same answer."""
        sign = node.nature.reserved_sign
        drivers = None if node.csi_drivers is None else node.csi_drivers & self.partial_drivers
        return _platform_of(node), _runtime_of(node), drivers, sign

    def conditions_of(self, pod: PodInfo, drivers: Sequence[str]) -> RunConditions:
        """Returns the conditions of a pod whose volumes have these CSI drivers."""
        if not self.is_needed:
            return ANYWHERE
        homes = self._homes(pod)
        key = (id(pod.requirements), id(homes) if len(homes) > 1 else homes, tuple(drivers))
        conditions = self._conditions_by_key.get(key)
        if conditions is None:
            conditions = self._conditions_by_key[key] = self._make_conditions(pod.requirements, homes, drivers)
        return conditions

    def _make_conditions(
        self, requirements: SchedulingRequirements, homes: Sequence[NodeInfo], drivers: Iterable[str]
    ) -> RunConditions:
        needs = requirements.runtime_needs
        used_drivers = self.partial_drivers.intersection((*drivers, *needs.volume_drivers))
        systems, architectures, builds = (
            self._platforms(requirements, homes) if self.mixes_platforms else (_ANY, _ANY, _ANY)
        )
        conditions = RunConditions(
            systems=systems,
            architectures=architectures,
            windows_builds=builds,
            handlers=self._handlers(needs.runtime_class, homes) if self.mixes_runtimes else _ANY,
            uses_user_namespace=needs.uses_user_namespace,
            uses_strict_groups=needs.uses_strict_groups,
            mounts_recursively=needs.mounts_recursively,
            # Where no node declares features, nothing is known about them.
            declared_features=needs.declared_features if self.declares_features else _ANY,
            drivers=used_drivers,
            preventing_drivers=used_drivers & self.inventory.preventing_drivers,
            selected_keys=self.reserved_keys.intersection(_required_keys(requirements)) if self.reserved_keys else _ANY,
            selects_only_reserved=self.has_reserved_nodes and self._selects_only_reserved(requirements),
            ready_platforms=frozenset(
                sign.platform for home in homes if (sign := home.nature.reserved_sign) is not None
            ),
        )
        return self._conditions.setdefault(conditions, conditions)

    def _homes(self, pod: PodInfo) -> tuple[NodeInfo, ...]:
        """Returns one node of each kind on which ready pods of the pod's owner run; if there are none, the pod's own
        node."""
        if self._ready_nodes is None:
            self._ready_nodes = self._find_ready_nodes()
        ready = self._ready_nodes.get(owner_key(pod))
        if ready:
            return ready
        return (self._nodes[pod.node],) if pod.node in self._nodes else ()

    def _find_ready_nodes(self) -> dict[OwnerKey, tuple[NodeInfo, ...]]:
        keys = {name: self.node_key(node) for name, node in self._nodes.items()}
        nodes_by_kind: dict[OwnerKey, dict[object, NodeInfo]] = {}
        for pod in self.inventory.pods:
            if pod.is_ready and not pod.is_finished and pod.node in keys:
                nodes_by_kind.setdefault(owner_key(pod), {}).setdefault(keys[pod.node], self._nodes[pod.node])
        return {owner: tuple(nodes.values()) for owner, nodes in nodes_by_kind.items()}

    def _platforms(
        self, requirements: SchedulingRequirements, homes: Sequence[NodeInfo]
    ) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
        """Returns the operating systems, architectures and builds of Windows on which the pod runs."""
        system = requirements.runtime_needs.operating_system
        if system:
            systems = frozenset({system})
        else:
            systems = _ANY if _decides(requirements, OS_LABELS) else frozenset(home.operating_system for home in homes)
        architectures = _ANY
        if homes and not _decides(requirements, ARCH_LABELS):
            named = frozenset(_named_values(requirements, ARCH_LABELS))
            architectures = _ANY if "" in named else named.union(home.architecture for home in homes)
        windows = [home.windows_build for home in homes if home.operating_system == WINDOWS]
        builds = _ANY if _decides(requirements, (WINDOWS_BUILD_LABEL,)) else frozenset(windows)
        return systems, architectures, builds

    def _handlers(self, runtime_class: str, homes: Sequence[NodeInfo]) -> frozenset[str]:
        if not runtime_class:
            return _ANY
        handler = self.inventory.runtime_handlers.get(runtime_class)
        if handler is not None:
            return frozenset({handler})
        # The class is not in the snapshot: a node with all handlers of the present one certainly has the right one.
        reported = [home.runtime_handlers for home in homes if home.runtime_handlers is not None]
        return frozenset(reported[0]) if reported else _ANY

    def _selects_only_reserved(self, requirements: SchedulingRequirements) -> bool:
        if not requirements.node_selector and requirements.node_affinity is None:
            return False
        answer = self._only_reserved.get(id(requirements))
        if answer is None:
            answer = self._only_reserved[id(requirements)] = not any(
                node.nature.reserved_sign is None and matches_node_selector(requirements, node)
                for node in self.inventory.nodes
            )
        return answer


_ANY: frozenset[str] = frozenset()


_UNREPORTED: object = (None, None, None)
"""What a node reports about its container runtime if it reports nothing."""


def _platform_of(node: NodeInfo) -> tuple[str, str, str]:
    return node.operating_system, node.architecture, node.windows_build


def _runtime_of(node: NodeInfo) -> object:
    handlers = node.runtime_handlers
    return (None if handlers is None else frozenset(handlers.items()), node.has_strict_groups, node.declared_features)


def _required_terms(requirements: SchedulingRequirements) -> tuple[NodeSelectorTerm, ...]:
    return () if requirements.node_affinity is None else requirements.node_affinity.node_selector_terms


def _decides(requirements: SchedulingRequirements, keys: Sequence[str]) -> bool:
    """Returns whether the pod's node selector, or every term of its required affinity, has a condition on one of these
    labels, so that its author has decided."""
    if any(key in requirements.node_selector for key in keys):
        return True
    terms = _required_terms(requirements)
    return bool(terms) and all(any(e.key in keys for e in value_or(term.match_expressions, ())) for term in terms)


def _required_keys(requirements: SchedulingRequirements) -> Iterator[str]:
    """Yields the labels that the pod requires a node to have."""
    yield from requirements.node_selector
    for term in _required_terms(requirements):
        yield from (e.key for e in value_or(term.match_expressions, ()) if e.operator in ("In", "Exists"))


def _named_values(requirements: SchedulingRequirements, keys: Sequence[str]) -> Iterator[str]:
    """Yields the values of these labels that the pod prefers, or whose taint it tolerates; an empty value stands for
    every value."""
    for preferred in requirements.preferred_nodes:
        for expression in value_or(preferred.preference.match_expressions, ()):
            if expression.key in keys and expression.operator == "In":
                yield from expression.values
    for toleration in requirements.tolerations:
        # GKE taints nodes of other architectures than amd64 with kubernetes.io/arch; a toleration without a key says
        # nothing about the architecture.
        if toleration.key in keys:
            yield "" if toleration.operator == "Exists" else toleration.value
