"""What verbs write is taken by a real API server, in a server-side dry run."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.autoscaling.capture_objects import CRD
from tests.cli.written_manifests import ALL_WRITERS, Writer
from tests.controlplane.api import ApiError
from tests.controlplane.binaries import Binaries
from tests.controlplane.binaries import kubectl as kubectl_binary
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.e2e import vpa

NAMESPACES = ("shop", "trimtab-system")
NOT_SERVED = {
    "SleepInfo",
    "NodeOverlay",
    "ComputeClass",
    "Component",
    "Certificate",
    "Issuer",
    "KubeSchedulerConfiguration",
    "KubeletConfiguration",
    "NodeConfig",
    "EC2NodeClass",
    "Shoot",
    "VerticalPodAutoscalerCheckpoint",
    "Pod",
}
"""Kinds of other products, files of other programs, and pods that only show what is stored."""
PARTS = ("recommend --patch",)
"""Verbs that write changes of an object that is in the cluster."""


@pytest.fixture(scope="module")
def cluster(built: Binaries) -> Iterator[Cluster]:
    with ControlPlane.start(built) as plane:
        cluster = Cluster(plane.kubeconfig, plane=plane)
        for definition in (vpa.definition(), *yaml.safe_load_all(CRD.read_text())):
            cluster.apply(definition)
        for kind in ("VerticalPodAutoscaler", "PodPolicy"):
            cluster.eventually(partial(is_served, cluster, kind), what=kind)
        for name in NAMESPACES:
            cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        yield cluster


def is_served(cluster: Cluster, kind: str) -> bool:
    try:
        return cluster.list(kind, everywhere=True) is not None
    except ApiError:
        return False


@pytest.mark.parametrize("writer", [one for one in ALL_WRITERS if not one.verb.startswith(PARTS)], ids=str)
def test_a_real_api_server_takes_it(writer: Writer, cluster: Cluster, tmp_path: Path) -> None:
    written: list[Any] = list(yaml.safe_load_all(writer.write(tmp_path)))
    served = [one for one in written if one and one.get("apiVersion") and one["kind"] not in NOT_SERVED]
    if not served:
        pytest.skip("it writes only objects that this API server does not serve")
    (tmp_path / "written.yaml").write_text(yaml.safe_dump_all(served))
    # Without `-n`: the objects name their own namespaces.
    done = subprocess.run(
        [
            "kubectl",
            "--kubeconfig",
            str(cluster.kubeconfig),
            "apply",
            "--server-side",
            "--force-conflicts",
            "--dry-run=server",
            "-f",
            str(tmp_path / "written.yaml"),
        ],
        executable=kubectl_binary(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr, done.stdout.count("(server dry run)")) == (0, "", len(served))
