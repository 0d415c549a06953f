"""A second reading of where a pod may be moved, written from the documentation and with none of the product's code.

It reads plain manifests. Sources: the Kubernetes documentation on assigning pods to nodes, on taints and tolerations,
on Windows (`spec.os`), on RuntimeClass, on CSINode; and the platforms' pages on virtual and edge nodes.
"""

from typing import Any

Item = dict[str, Any]

VIRTUAL = {"type": "virtual-kubelet", "eks.amazonaws.com/compute-type": "fargate"}
EDGE = {"openyurt.io/is-edge-worker": "true", "eks.amazonaws.com/compute-type": "hybrid"}


def labels_of(node: Item) -> dict[str, str]:
    labels: dict[str, str] = node["metadata"].get("labels", {})
    return labels


def sign_of(node: Item) -> tuple[str, str] | None:
    """Returns the label that says that the node is virtual or at the edge; None for an ordinary one."""
    for signs in (VIRTUAL, EDGE):
        for key, value in signs.items():
            if labels_of(node).get(key) == value:
                return key, value
    return None


def is_virtual(node: Item) -> bool:
    return any(labels_of(node).get(key) == value for key, value in VIRTUAL.items())


def _terms(pod: Item) -> list[Item]:
    required = (
        pod["spec"]
        .get("affinity", {})
        .get("nodeAffinity", {})
        .get("requiredDuringSchedulingIgnoredDuringExecution", {})
    )
    terms: list[Item] = required.get("nodeSelectorTerms", [])
    return terms


def _holds(expression: Item, labels: dict[str, str]) -> bool:
    key, operator, values = expression["key"], expression["operator"], expression.get("values", [])
    return {
        "In": labels.get(key) in values,
        "NotIn": labels.get(key) not in values,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }[operator]


def selects(pod: Item, node: Item) -> bool:
    labels, terms = labels_of(node), _terms(pod)
    if any(labels.get(key) != value for key, value in pod["spec"].get("nodeSelector", {}).items()):
        return False
    return not terms or any(all(_holds(e, labels) for e in term["matchExpressions"]) for term in terms)


def tolerates(pod: Item, node: Item) -> bool:
    def is_tolerated(taint: Item) -> bool:
        return any(
            one.get("key", taint["key"]) == taint["key"]
            and one.get("effect", taint["effect"]) == taint["effect"]
            and (one.get("operator") == "Exists" or one.get("value", "") == taint.get("value", ""))
            for one in pod["spec"].get("tolerations", [])
        )

    return all(is_tolerated(t) for t in node["spec"].get("taints", []) if t["effect"] != "PreferNoSchedule")


CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
"""The taint of a cordoned node (documentation of taints and tolerations)."""


def comes_back(pod: Item, node: Item) -> bool:
    """Returns whether the scheduler may place the pod's successor on this node although it was cordoned to be
    drained."""
    cordoned = {**node, "spec": {**node["spec"], "taints": [*node["spec"].get("taints", []), CORDON]}}
    return is_schedulable(pod, cordoned)


def is_schedulable(pod: Item, node: Item) -> bool:
    """Returns what kube-scheduler says, resources aside."""
    return selects(pod, node) and tolerates(pod, node)


class World:
    """The manifests of a cluster."""

    def __init__(self, items: list[Item]) -> None:
        def by_kind(kind: str) -> list[Item]:
            return [item for item in items if item["kind"] == kind]

        self.nodes = {node["metadata"]["name"]: node for node in by_kind("Node")}
        self.pods = by_kind("Pod")
        self.storage = {one["metadata"]["name"]: one["spec"]["drivers"] or [] for one in by_kind("CSINode")}
        self.handlers = {one["metadata"]["name"]: one["handler"] for one in by_kind("RuntimeClass")}
        self.preventing = {
            one["metadata"]["name"] for one in by_kind("CSIDriver") if one["spec"]["preventPodSchedulingIfMissing"]
        }
        volumes = {one["metadata"]["name"]: one["spec"]["csi"]["driver"] for one in by_kind("PersistentVolume")}
        self.drivers = {
            one["metadata"]["name"]: volumes[one["spec"]["volumeName"]] for one in by_kind("PersistentVolumeClaim")
        }

    def homes(self, pod: Item) -> list[Item]:
        """Returns the nodes of the ready pods of the pod's owner, or the pod's own node if none is ready."""
        owner = pod["metadata"]["ownerReferences"][0]["name"]
        ready = [
            self.nodes[one["spec"]["nodeName"]]
            for one in self.pods
            if one["metadata"]["ownerReferences"][0]["name"] == owner
            and one["spec"].get("nodeName")
            and one["status"]["conditions"][0]["status"] == "True"
        ]
        own = pod["spec"].get("nodeName")
        return ready or ([self.nodes[own]] if own else [])

    def author_decides(self, pod: Item, key: str) -> bool:
        terms = _terms(pod)
        return key in pod["spec"].get("nodeSelector", {}) or (
            bool(terms) and all(any(e["key"] == key for e in term["matchExpressions"]) for term in terms)
        )

    def runs_on(self, pod: Item, node: Item) -> bool:
        """Returns whether the kubelet, the image and the volumes' drivers accept the pod there."""
        homes = self.homes(pod)
        system = labels_of(node).get("kubernetes.io/os", "")
        if "os" in pod["spec"]:
            if system != pod["spec"]["os"]["name"]:
                return False
        elif (
            homes
            and not self.author_decides(pod, "kubernetes.io/os")
            and system not in {labels_of(home).get("kubernetes.io/os", "") for home in homes}
        ):
            return False
        if homes and not self.author_decides(pod, "kubernetes.io/arch"):
            good = {labels_of(home).get("kubernetes.io/arch", "") for home in homes}
            for one in pod["spec"].get("tolerations", []):
                if one.get("key") == "kubernetes.io/arch":
                    good |= {"amd64", "arm64"} if one.get("operator") == "Exists" else {one["value"]}
            if labels_of(node).get("kubernetes.io/arch", "") not in good:
                return False
        reported = {one["name"]: one["features"] for one in node["status"].get("runtimeHandlers", [])}
        expected = self.handlers.get(pod["spec"].get("runtimeClassName", ""), "")
        if reported and expected not in reported:
            return False
        mounts = [mount for one in pod["spec"]["containers"] for mount in one.get("volumeMounts", [])]
        insists = any(mount["recursiveReadOnly"] == "Enabled" for mount in mounts)
        if reported and insists and not reported[expected]["recursiveReadOnlyMounts"]:
            return False
        if reported and pod["spec"].get("hostUsers") is False and not reported[expected]["userNamespaces"]:
            return False
        return self.has_features(pod, node) and not self.missing_drivers(pod, node)

    def has_features(self, pod: Item, node: Item) -> bool:
        """Returns whether the node declares what the pod's spec needs; where no node declares anything, it does."""
        if not any("declaredFeatures" in one["status"] for one in self.nodes.values()):
            return True
        spec = pod["spec"]
        rules = [rule["action"] for one in spec["containers"] for rule in one.get("restartPolicyRules", [])]
        needed = {"RestartAllContainersOnContainerExits"} if "RestartAllContainers" in rules else set()
        if spec.get("hostNetwork") and spec.get("hostUsers") is False:
            needed.add("UserNamespacesHostNetworkSupport")
        return needed <= {*node["status"].get("declaredFeatures", [])}

    def missing_drivers(self, pod: Item, node: Item) -> set[str]:
        """Returns the drivers of the pod's volumes that the node lacks, as far as anything is known about drivers."""
        drivers = {
            volume["csi"]["driver"] if "csi" in volume else self.drivers[volume["persistentVolumeClaim"]["claimName"]]
            for volume in pod["spec"].get("volumes", [])
        }
        somewhere = {driver["name"] for names in self.storage.values() for driver in names}
        checked = self.preventing if self.storage else set()
        here = {driver["name"] for driver in self.storage.get(node["metadata"]["name"], [])}
        return (drivers & (somewhere | checked)) - here

    def belongs_on(self, pod: Item, node: Item) -> bool:
        """Returns whether the node is ordinary, or the pod selects nodes of its kind."""
        sign = sign_of(node)
        if sign is None:
            return True
        names = set(pod["spec"].get("nodeSelector", {}))
        names |= {e["key"] for t in _terms(pod) for e in t["matchExpressions"] if e["operator"] in ("In", "Exists")}
        if sign[0] in names:
            return True
        is_choosy = bool(pod["spec"].get("nodeSelector")) or bool(_terms(pod))
        return is_choosy and not any(sign_of(n) is None and selects(pod, n) for n in self.nodes.values())

    def may_move(self, pod: Item, node: Item) -> bool:
        return is_schedulable(pod, node) and self.runs_on(pod, node) and self.belongs_on(pod, node)

    def is_accident(self, pod: Item, node: Item) -> bool:
        """Returns whether it would do harm if the scheduler placed the pod on the node."""
        if not is_schedulable(pod, node) or self.may_move(pod, node):
            return False
        if self.missing_drivers(pod, node) & self.preventing:
            return False
        if self.belongs_on(pod, node):
            return True
        kinds = [is_virtual(home) for home in self.homes(pod) if sign_of(home) == sign_of(node)]
        return not kinds
