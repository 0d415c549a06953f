"""A second kube-scheduler beside the cluster's own, under another name, that packs nodes (MostAllocated)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane import flags, ports
from tests.controlplane.control_plane import ControlPlane

NAME = "bin-packing-scheduler"


def packing_configuration() -> dict[str, Any]:
    """Of the scores only NodeResourcesFit counts; the filters are stock."""
    scored = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
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


@contextmanager
def second_scheduler(
    plane: ControlPlane, configuration: Mapping[str, Any] | None = None, login: Path | None = None
) -> Iterator[str]:
    """Its `schedulerName`. `configuration`: the default one packs. `login`: a kubeconfig; the default is that of the
    cluster's own scheduler."""
    kubeconfig = str(login or plane.layout.kubeconfigs["kube-scheduler"])
    connection = {"kubeconfig": kubeconfig, "qps": 500, "burst": 1000}
    whole = {**(configuration or packing_configuration()), "clientConnection": connection}
    path = plane.folder / "second-scheduler.yaml"
    path.write_text(yaml.safe_dump(whole))
    [port] = ports.free(1)
    # These flags would override the configuration file.
    arguments = [
        one for one in flags.kube_scheduler(plane.layout) if not one.startswith(("--leader-elect", "--kubeconfig"))
    ]
    arguments += [f"--secure-port={port}", f"--config={path}"]
    plane.processes.start("second-scheduler", [plane.binaries["kube-scheduler"], *arguments])
    try:
        yield str(whole["profiles"][0]["schedulerName"])
    finally:
        plane.processes.stop("second-scheduler")
