"""The pods for which `trimtab plan` makes room: from a manifest, the pods that wait, or amounts on the command line."""

from collections.abc import Iterator
from typing import Any

from trimtab.cluster import quantity
from trimtab.cluster.api.meta import change
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.config_error import ConfigError, first_mistakes
from trimtab.cluster.node import ZONE_LABEL
from trimtab.cluster.pod import PodInfo, PodReader
from trimtab.cluster.yaml_documents import Document
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.plan_inputs import parse_documents

MAX_PODS = 200
"""The largest number of pods for which room is made at once."""
_NAMESPACE = "default"
_EXPECTED = "a manifest, or amounts such as cpu=16,memory=64Gi,nvidia.com/gpu=8,count=4,within=zone"


def list_pending_pods(inventory: Inventory) -> tuple[PodInfo, ...]:
    """Returns the pods of the cluster that wait for a node."""
    return tuple(pod for pod in inventory.pods if pod.needs_node and not pod.is_finished)


def read_wanted_pods(text: str) -> tuple[tuple[PodInfo, ...], str]:
    """Returns the pods of --for, and the label of nodes of which all must have one value; empty if there is none.

    `text` is the path of a manifest, or amounts as NAME=QUANTITY. Raises UsageError with every mistake."""
    pods, within = _read_amounts(text) if "=" in text else (_read_manifest(text), "")
    if not 0 < len(pods) <= MAX_PODS:
        raise UsageError([ConfigError(file="--for", expected=f"1 to {MAX_PODS} pods", got=str(len(pods)))])
    return pods, within


def _read_amounts(text: str) -> tuple[tuple[PodInfo, ...], str]:
    amounts: dict[str, str] = {}
    words = {"count": "1", "priority": "0", "within": ""}
    mistakes: list[ConfigError] = []
    for part in text.split(","):
        name, has_value, value = part.strip().partition("=")
        if name in words and has_value:
            words[name] = value
        elif has_value and quantity.is_quantity(value):
            amounts[name] = value
        else:
            mistakes.append(ConfigError(file="--for", expected=_EXPECTED, got=part))
    mistakes += [
        ConfigError(file="--for", expected=f"a whole number after {name}=", got=words[name])
        for name in ("count", "priority")
        if not words[name].isdecimal()
    ]
    if not amounts and not mistakes:
        mistakes.append(ConfigError(file="--for", expected=_EXPECTED, got=text))
    if mistakes:
        raise UsageError(first_mistakes(mistakes))
    # As the admission plugin ExtendedResourceToleration: a pod tolerates the taint of the devices that it requests.
    tolerations = [{"key": name, "operator": "Exists"} for name in amounts if "/" in name]
    spec = {
        "containers": [{"name": "app", "image": "app", "resources": {"requests": amounts}}],
        "tolerations": tolerations,
        "priority": int(words["priority"]),
    }
    document = Document(file="--for", index=0, value={"kind": "Pod", "apiVersion": "v1", "spec": spec})
    pods = tuple(_number_pods([(_decode(document), int(words["count"]))]))
    return pods, ZONE_LABEL if words["within"] == "zone" else words["within"]


def _decode(document: Document) -> Pod:
    from trimtab.admission.pod_templates import read_templates

    [location] = read_templates(document)
    if isinstance(location, ConfigError):
        raise UsageError([location])
    return location.pod


def _read_manifest(path: str) -> tuple[PodInfo, ...]:
    from trimtab.admission.pod_templates import read_templates

    documents, mistakes = parse_documents(live_cluster.read_paths((path,)))
    counted: list[tuple[Pod, int]] = []
    for document in documents:
        for location in read_templates(document):
            if isinstance(location, ConfigError):
                mistakes.append(location)
            else:
                pod = location.pod
                # A template names no namespace: its pods are in that of the workload.
                metadata = change(pod.metadata, namespace=pod.metadata.namespace or location.namespace)
                counted.append((change(pod, metadata=metadata), location.replicas))
    if mistakes:
        raise UsageError(first_mistakes(mistakes))
    return tuple(_number_pods(counted))


def _number_pods(counted: list[tuple[Pod, int]]) -> Iterator[PodInfo]:
    """Yields every replica as a pod of its own, which is on no node. `counted`: (pod, number of replicas)."""
    reader = PodReader()
    for pod, replicas in counted:
        metadata: Any = pod.metadata
        base = metadata.name or f"{metadata.generate_name or 'wanted-'}".rstrip("-")
        for number in range(replicas):
            name = f"{base}-{number}" if replicas > 1 else base
            named = change(metadata, name=name, namespace=metadata.namespace or _NAMESPACE)
            spec = change(pod.spec, node_name="")
            yield reader.read_pod(change(pod, metadata=named, spec=spec))
