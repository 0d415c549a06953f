"""HorizontalPodAutoscalers that write the count of a workload: their bounds, and who writes these bounds.

An object that a continuous delivery tool keeps as it stands in Git is written back whenever another client changes it.
Four signs of that are read, because none alone is certain: an owner reference, the labels and annotations by which
such tools find their objects, the names of their field managers, and server-side apply, which is how a client says
that it decides a field.
"""

from __future__ import annotations

from dataclasses import dataclass

from trimtab.cluster.api.autoscaling import HorizontalPodAutoscaler
from trimtab.cluster.api.meta import value_or

DELIVERY_MARKS = (
    "argocd.argoproj.io/instance",
    "argocd.argoproj.io/tracking-id",
    "kustomize.toolkit.fluxcd.io/name",
    "helm.toolkit.fluxcd.io/name",
    "objectset.rio.cattle.io/id",
    "configmanagement.gke.io/managed",
    "scaledobject.keda.sh/name",
)
"""The labels and annotations of objects that a controller keeps as they are: Argo CD (resource tracking), Flux (its
kustomize and helm controllers), Rancher Fleet, Config Sync, KEDA. Their documentation names these keys."""
DELIVERY_MANAGERS = (
    "argocd",
    "argocd-application-controller",
    "argocd-controller",
    "configsync",
    "fleetagent",
    "helm-controller",
    "keda",
    "keda-operator",
    "kustomize-controller",
)
"""The field managers with which these controllers write."""
APPLIES = "Apply"
"""The operation of a server-side apply in `managedFields`."""
OUR_MANAGERS = "trimtab-"
"""The beginning of the field managers with which Trimtab raises `minReplicas` for a while."""
MIN_REPLICAS_BEFORE = "trimtab.dev/min-replicas-before"
"""The annotation on a HorizontalPodAutoscaler whose `minReplicas` is raised, such as "2-4": it was 2 and is 4."""


_DEFAULT_STABILIZATION = 300
"""kube-controller-manager's `--horizontal-pod-autoscaler-downscale-stabilization`, by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountAutoscaler:
    """A HorizontalPodAutoscaler, as far as it matters for the count that it writes."""

    namespace: str
    name: str
    min_replicas: int
    max_replicas: int
    current: int
    """The count that its controller has read last, according to its status."""
    desired: int
    """The count that its controller has decided last."""
    stabilization_seconds: int = 300
    """For how many seconds its controller waits before it follows a lower recommendation."""
    keeper: str = ""
    """What shows that another controller keeps the object as it is, as text; empty if nothing does."""
    is_writer_known: bool = True
    """Whether the managed fields of the object were read, which say who writes it."""

    @property
    def key(self) -> str:
        """The object as namespace/name."""
        return f"{self.namespace}/{self.name}"


def read_count_autoscaler(shape: HorizontalPodAutoscaler) -> CountAutoscaler:
    """Returns the HorizontalPodAutoscaler."""
    spec, status, metadata = shape.spec, shape.status, shape.metadata
    down = spec.behavior.scale_down
    window = down.stabilization_window_seconds if down is not None else None
    return CountAutoscaler(
        namespace=metadata.namespace,
        name=metadata.name,
        # The API server's default.
        min_replicas=1 if spec.min_replicas is None else spec.min_replicas,
        max_replicas=spec.max_replicas,
        current=status.current_replicas,
        desired=status.desired_replicas,
        stabilization_seconds=_DEFAULT_STABILIZATION if window is None else window,
        keeper=_find_keeper(shape),
        is_writer_known=bool(metadata.managed_fields),
    )


def _find_keeper(shape: HorizontalPodAutoscaler) -> str:
    metadata = shape.metadata
    if metadata.owner_references:
        owner = metadata.owner_references[0]
        return f"{owner.kind_name} {owner.name} owns it"
    marks = {**value_or(metadata.labels, {}), **value_or(metadata.annotations, {})}
    if (mark := next((key for key in DELIVERY_MARKS if key in marks), None)) is not None:
        return f"it has the mark {mark}"
    for entry in metadata.managed_fields:
        if entry.manager.startswith(OUR_MANAGERS) or not entry.sets_min_replicas:
            continue
        if entry.manager in DELIVERY_MANAGERS or entry.operation == APPLIES:
            return f"the field manager {entry.manager} applies its minReplicas"
    return ""
