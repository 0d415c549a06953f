"""What was seen, as checkpoints that a fresh VPA begins with."""

from typing import Any

import msgspec
import yaml

from trimtab.command.recommend.standing import Cluster
from trimtab.policy import vpa
from trimtab.sketch.book import Book, Container
from trimtab.sketch.vpa import checkpoint, export

_API_VERSION = "autoscaling.k8s.io/v1"


def checkpoints(book: Book, cluster: Cluster) -> list[dict[str, Any]]:
    """One for each container of which cpu is known; where no VPA sizes it yet, for one named after its workload."""
    found = []
    for container in book.containers():
        cpu = book.window(container, "cpu")
        if cpu.last:
            known = export.known(cpu, book.window(container, "memory"))
            found.append(_document(container, _autoscaler(container, cluster), checkpoint.write(known)))
    return found


def text(documents: list[dict[str, Any]]) -> str:
    return yaml.safe_dump_all(documents, sort_keys=False)


def _autoscaler(container: Container, cluster: Cluster) -> str:
    standing = cluster.standing.get(container)
    found = vpa.of(standing.subject) if standing is not None else None
    return found.metadata.name if found is not None else container.workload


def _document(container: Container, name: str, status: checkpoint.CheckpointStatus) -> dict[str, Any]:
    return {
        "apiVersion": _API_VERSION, "kind": "VerticalPodAutoscalerCheckpoint",
        "metadata": {"name": f"{name}-{container.name}", "namespace": container.namespace},
        "spec": {"vpaObjectName": name, "containerName": container.name},
        "status": msgspec.to_builtins(status),
    }  # fmt: skip
