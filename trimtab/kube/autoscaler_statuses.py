"""Finds the status ConfigMaps of all cluster autoscalers in a cluster, whatever their names are.

An autoscaler marks its status with an annotation. So the metadata of the ConfigMaps in its usual namespace is enough to
find further statuses: no other content is read. The content decides afterwards whether it is a status.
"""

from dataclasses import replace

from trimtab.cluster.api.meta import value_or
from trimtab.cluster.cluster_autoscaler import STATUS_NAME, STATUS_NAMESPACE, UPDATED_ANNOTATION
from trimtab.kube.client import Client
from trimtab.kube.errors import RequestRefused
from trimtab.kube.listing import iter_objects
from trimtab.kube.resources import LIST_SOURCES, ListSource


def status_sources(client: Client) -> tuple[ListSource, ...]:
    """Returns a list for each status with another name than the default one; none if the user may not list ConfigMaps
    in the namespace."""
    maps = replace(LIST_SOURCES["ConfigMap"], namespace=STATUS_NAMESPACE)
    try:
        names = [
            name
            for (_, name), item in iter_objects(client, replace(maps, metadata_only=True))
            if name != STATUS_NAME and UPDATED_ANNOTATION in value_or(item.metadata.annotations, {})
        ]
    except RequestRefused:
        return ()
    return tuple(replace(maps, field_selector=f"metadata.name={name}") for name in sorted(names))
