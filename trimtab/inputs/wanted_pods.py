"""The pods for which `trimtab plan` makes room: from a manifest, the pods that wait, or amounts on the command line."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trimtab.cluster import quantity
from trimtab.cluster.api.meta import Metadata, change
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.config_error import ConfigError, first_mistakes
from trimtab.cluster.node import ZONE_LABEL
from trimtab.cluster.pod import PodInfo, PodReader
from trimtab.cluster.yaml_documents import Document
from trimtab.compaction.room.room_plan import NoRoom
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.plan_inputs import PlanInputs, PlanOptions, parse_documents

if TYPE_CHECKING:
    from trimtab.admission.pod_templates import PodTemplateLocation

MAX_PODS = 200
"""The largest number of pods for which room is made at once."""
_NAMESPACE = "default"
_EXPECTED = "a manifest, or amounts such as cpu=16,memory=64Gi,nvidia.com/gpu=8,count=4,within=zone"


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedPods:
    """The pods that want to run, and the cluster in which they look for a node."""

    pods: tuple[PodInfo, ...]
    inventory: Inventory
    """The cluster with the claims that the pods bring."""
    within: str = ""
    """The label of nodes of which all pods need nodes with one value; empty if there is none."""
    refusal: NoRoom | None = None
    """Why the cluster would not store a pod, or not all of them; None if it would."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedManifests:
    """The manifests of --for, before the cluster is read."""

    documents: tuple[Document, ...]
    templates: "tuple[PodTemplateLocation, ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedAmounts:
    """Pods with the amounts of --for."""

    pods: tuple[PodInfo, ...]
    within: str
    """The label of nodes of which all pods need nodes with one value; empty if there is none."""


def read_wanted(text: str) -> WantedManifests | WantedAmounts:
    """Returns what --for names: the path of a manifest, or amounts as NAME=QUANTITY. Raises UsageError with every
    mistake."""
    return _read_amounts(text) if "=" in text else _read_manifests(text)


def find_wanted_pods(
    request: WantedManifests | WantedAmounts | None, plan_inputs: PlanInputs, options: PlanOptions
) -> WantedPods:
    """Returns the pods of --for in this cluster, or for None, the pods of the cluster that wait for a node. Raises
    UsageError with every mistake, and if there are no pods, or too many."""
    inventory = plan_inputs.inventory
    if isinstance(request, WantedAmounts):
        return WantedPods(pods=request.pods, inventory=inventory, within=request.within)
    if request is None:
        pods = tuple(pod for pod in inventory.pods if pod.needs_node and not pod.is_finished)
        if not pods:
            raise UsageError([ConfigError(file="--for-pending", expected="a pod that waits for a node", got="none")])
        wanted = WantedPods(pods=pods, inventory=inventory)
    else:
        from trimtab.inputs.admitted_pods import admit_manifests  # admission is slow to import

        wanted = admit_manifests(
            request.documents,
            request.templates,
            plan_inputs.documents,
            inventory,
            options.policy_paths,
            options.admission_settings,
        )
    if wanted.refusal is None:
        _check_count(len(wanted.pods))
    return wanted


def _check_count(count: int) -> None:
    """Raises UsageError unless room can be made for so many pods at once."""
    if not 0 < count <= MAX_PODS:
        raise UsageError([ConfigError(file="--for", expected=f"1 to {MAX_PODS} pods", got=str(count))])


def _read_amounts(text: str) -> WantedAmounts:
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
    count = int(words["count"])
    _check_count(count)
    from trimtab.admission.pod_templates import read_templates

    [location] = read_templates(
        Document(file="--for", index=0, value={"kind": "Pod", "apiVersion": "v1", "spec": spec})
    )
    if isinstance(location, ConfigError):
        raise UsageError([location])
    reader = PodReader()
    names = [f"wanted-{number}" for number in range(count)] if count > 1 else ["wanted"]
    pods = [change(location.pod, metadata=Metadata(name=name, namespace=_NAMESPACE)) for name in names]
    within = ZONE_LABEL if words["within"] == "zone" else words["within"]
    return WantedAmounts(pods=tuple(map(reader.read_pod, pods)), within=within)


def _read_manifests(path: str) -> WantedManifests:
    from trimtab.admission.pod_templates import is_unknown_kind, read_templates, why_not_admitted
    from trimtab.admission.referenced_templates import add_referenced_templates

    documents, mistakes = parse_documents(live_cluster.read_paths((path,)))
    documents = add_referenced_templates(documents)
    templates = []
    for document in documents:
        for location in read_templates(document):
            if isinstance(location, ConfigError):
                mistakes.append(location)
            else:
                templates.append(location)
    if mistakes:
        raise UsageError(first_mistakes(mistakes))
    if not templates:
        unread = [
            why_not_admitted(document) or f"{document.entry_name} has no pod template"
            for document in documents
            if why_not_admitted(document) or is_unknown_kind(document)
        ]
        expected = "a Pod, or an object with a pod template"
        raise UsageError([ConfigError(file=path, expected=expected, got="; ".join(unread[:3]) or "none")])
    return WantedManifests(documents=tuple(documents), templates=tuple(templates))
