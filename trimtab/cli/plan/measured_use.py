"""Reads what pods that request nothing use now: from the metrics API of a live cluster, or from the files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing

from trimtab.cli.live_cluster import LIVE, ClusterOptions
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.measured_use import OwnerKey, is_use_needed, use_by_owner
from trimtab.cluster.resources import Amounts
from trimtab.cluster.yaml_documents import Document

KIND = "PodMetrics"
"""The kind of what `kubectl get podmetrics -A -o yaml` prints."""

MeasuredUse = tuple[Mapping[OwnerKey, Amounts], Sequence[str]]
"""Owner → the use, and notes about the source."""


def read_measured_use(cluster: ClusterOptions, documents: Iterable[Document], inventory: Inventory) -> MeasuredUse:
    """Return what the inventory's pods use that request no cpu or no memory, by owner, with a note about the source.

    Nothing is read if all pods that may move request both.
    """
    unsized = [pod for pod in inventory.pods if is_use_needed(pod)]
    if not unsized:
        return {}, ()
    objects = [document.value for document in documents if document.kind == KIND]
    is_live = LIVE in cluster.paths
    if not objects and not is_live:
        return {}, ()
    # Imported here because most plans need none of it, and the HTTP client is slow to import.
    from trimtab.usage.metrics_api import pod_use_of_objects

    used = dict(pod_use_of_objects(objects))
    notes: list[str] = []
    if is_live:
        present, problem = _read_present_use(cluster)
        used.update(present)
        notes += [problem] if problem else []
    by_owner = use_by_owner(unsized, used)
    known = sum(pod.key in used for pod in unsized)
    if known:
        notes.append(
            f"{known:,} of {len(unsized):,} pods that request no cpu or no memory count with what a pod of their owner"
            " uses now, if that is more than what is assumed for them"
        )
    return by_owner, notes


def _read_present_use(cluster: ClusterOptions) -> tuple[Mapping[str, Amounts], str]:
    """Return what every pod uses now, and why that is not known, if it is not."""
    from trimtab.kube.client import connect_to_cluster
    from trimtab.kube.errors import KubeFault, NotFound
    from trimtab.usage.metrics_api import read_pod_use

    try:
        with closing(connect_to_cluster(cluster.kubeconfig, cluster.context)) as client:
            return read_pod_use(client), ""
    except NotFound:
        return {}, "this cluster serves no metrics API (metrics-server): what pods without requests use is not known"
    except KubeFault as error:
        return {}, f"what pods without requests use is not known: {error}"
