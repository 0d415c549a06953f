"""A second kube-scheduler beside the cluster's own, under another name, that packs nodes (MostAllocated)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import yaml

from tests.controlplane import flags, ports
from tests.controlplane.control_plane import ControlPlane

NAME = "bin-packing-scheduler"


@contextmanager
def second_scheduler(plane: ControlPlane) -> Iterator[str]:
    """Its `schedulerName`. Of the scores only NodeResourcesFit counts; the filters are stock."""
    scored = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]}
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(plane.layout.kubeconfigs["kube-scheduler"]), "qps": 500, "burst": 1000},
        "leaderElection": {"leaderElect": False},
        "percentageOfNodesToScore": 100,
        "profiles": [
            {
                "schedulerName": NAME,
                "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}},
                "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": scored}}],
            }
        ],
    }
    path = plane.folder / "second-scheduler.yaml"
    path.write_text(yaml.safe_dump(configuration))
    [port] = ports.free(1)
    arguments = [*flags.kube_scheduler(plane.layout), f"--secure-port={port}", f"--config={path}"]
    plane.processes.start("second-scheduler", [plane.binaries["kube-scheduler"], *arguments])
    try:
        yield NAME
    finally:
        plane.processes.stop("second-scheduler")
