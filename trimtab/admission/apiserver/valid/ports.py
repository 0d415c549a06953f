"""May a pod have these ports on its host? On the host network every port is one, so two containers soon collide."""

import json
from collections.abc import Iterator

from trimtab.cluster.api.pod import Container, PodSpec


def complaints(spec: PodSpec) -> Iterator[str]:
    """A protocol, address and port once among the containers; init containers run alone, each is judged by itself."""
    yield from _twice("spec.containers", spec.containers)
    for init in spec.init_containers:
        yield from _twice("spec.initContainers", (init,))


def _twice(field: str, containers: tuple[Container, ...]) -> Iterator[str]:
    seen: set[str] = set()
    for at, container in enumerate(containers):
        for place, port in enumerate(container.ports):
            named = f"{port.protocol}/{port.host_ip}/{port.host_port}"
            if port.host_port and named in seen:
                yield f"{field}[{at}].ports[{place}].hostPort: Duplicate value: {json.dumps(named)}"
            seen.add(named)
