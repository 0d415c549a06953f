"""Reads the present usage of pods that do not request cpu or memory: from the metrics API, or from the files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing

from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.measured_use import POD_METRICS, is_use_needed, use_by_owner
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.resources import Amounts
from trimtab.cluster.yaml_documents import Document
from trimtab.inputs.live_cluster import LIVE, ClusterOptions, metrics_problem


def read_measured_use(
    cluster: ClusterOptions, documents: Iterable[Document], inventory: Inventory
) -> tuple[Mapping[OwnerKey, Amounts], Sequence[str]]:
    """Returns owner → the present usage of its pods that do not request cpu or memory, with notes about the source.

    Nothing is read if all pods that may move request both.
    """
    pods_without_requests = [pod for pod in inventory.pods if is_use_needed(pod)]
    if not pods_without_requests:
        return {}, ()
    objects = [document.value for document in documents if document.kind == POD_METRICS]
    is_live = LIVE in cluster.paths
    if not objects and not is_live:
        return {}, ()
    # Imported here because most plans need none of it, and the HTTP client is slow to import.
    from trimtab.usage.metrics_api import pod_use_of_objects

    use_by_pod = dict(pod_use_of_objects(objects))
    notes: list[str] = []
    if is_live:
        present, problem = _read_present_use(cluster)
        use_by_pod.update(present)
        notes += [problem] if problem else []
    by_owner = use_by_owner(pods_without_requests, use_by_pod)
    count = sum(pod.key in use_by_pod for pod in pods_without_requests)
    if count:
        notes.append(
            f"{count:,} of {len(pods_without_requests):,} pods without a request for cpu or memory are planned "
            "with the present usage of a pod of the same owner, because the usage is higher than the request "
            "that Trimtab assumes"
        )
    return by_owner, notes


def _read_present_use(cluster: ClusterOptions) -> tuple[Mapping[str, Amounts], str]:
    """Returns pod → its present usage, and a note if it cannot be read."""
    from trimtab.kube.client import connect_to_cluster
    from trimtab.kube.errors import KubeFault
    from trimtab.usage.metrics_api import read_pod_use

    try:
        with closing(connect_to_cluster(cluster.kubeconfig, cluster.context)) as client:
            return read_pod_use(client), ""
    except KubeFault as error:
        return {}, metrics_problem(error)
