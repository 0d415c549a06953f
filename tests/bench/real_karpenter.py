"""Karpenter itself, of the module `tests/controlplane/modules/karpenter`, with its kwok provider and our catalogue."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import yaml

from tests.bench.peer_scenario import PROVISION_SECONDS, PeerScenario, create_node_claims, create_node_pool
from tests.bench.peer_scenario import list_karpenter_types as list_types
from tests.controlplane import binaries, environ, modules
from tests.controlplane.cluster import Cluster
from tests.controlplane.objects import Object
from tests.controlplane.ports import free
from tests.controlplane.supervisor import die_with_parent
from tests.e2e.ours import install_crd
from tests.e2e.real_vpa import Program

USER = "karpenter"


@cache
def definitions() -> tuple[Object, ...]:
    """The CustomResourceDefinitions of the module, which are read from its source."""
    module = modules.karpenter()
    command = ["go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module.path]
    folder = subprocess.run(command, cwd=module.folder, check=True, capture_output=True, text=True).stdout.strip()
    files = [*Path(folder).glob("pkg/apis/crds/*.yaml"), *Path(folder).glob("kwok/apis/crds/*.yaml")]
    return tuple(one for file in sorted(files) for one in yaml.safe_load_all(file.read_text()) if one)


@contextmanager
def karpenter(cluster: Cluster, folder: Path) -> Iterator[Program]:
    """Karpenter, running, with its definitions installed and a NodePool that does not consolidate yet."""
    for definition in definitions():
        install_crd(cluster, definition)
    catalogue, log, mine = folder / "types.json", folder / "karpenter.log", os.getpid()
    catalogue.write_text(json.dumps(list_types()))
    metrics, health = free(2)
    surroundings = {
        **environ.plain(),
        "KUBECONFIG": str(cluster.plane.kubeconfig_for(USER, "system:masters")),
        "DISABLE_LEADER_ELECTION": "true",
        "SYSTEM_NAMESPACE": "kube-system",
        "METRICS_PORT": str(metrics),
        "HEALTH_PROBE_PORT": str(health),
    }
    command = [str(binaries.karpenter()), f"--instance-types-file-path={catalogue}"]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, env=surroundings, stderr=out, stdout=out, preexec_fn=lambda: die_with_parent(mine)
        )
    running = Program(process, log)
    try:
        cluster.create(_node_class(seconds=0))
        cluster.create(create_node_pool(consolidates=False))
        yield running
    finally:
        running.end()


def create_first_nodes(cluster: Cluster, scenario: PeerScenario) -> None:
    """Has Karpenter make the nodes of the beginning, without the time that machines take later."""
    for claim in create_node_claims(scenario):
        cluster.create(claim)


def let_it_consolidate(cluster: Cluster) -> None:
    """From now on it consolidates, and a machine takes its time."""
    cluster.patch("KWOKNodeClass", "default", {"spec": _node_class(seconds=PROVISION_SECONDS)["spec"]})
    cluster.patch(
        "NodePool", "pool", {"spec": {"disruption": create_node_pool(consolidates=True)["spec"]["disruption"]}}
    )


def _node_class(*, seconds: int) -> Object:
    return {
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": {"name": "default"},
        "spec": {"nodeRegistrationDelay": f"{seconds}s"},
    }
