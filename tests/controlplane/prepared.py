"""Clusters that take long to make, made once: etcd's data is kept in the cache folder and started from."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path

from tests.controlplane.binaries import Binaries, cache_folder
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane


def start(
    binaries: Binaries,
    name: str,
    version: str,
    prepare: Callable[[Cluster], None],
    *,
    cache: Path | None = None,
    start_up: int = 0,
) -> ControlPlane:
    """A control plane that holds what `prepare` made.

    The first time it is called with a fresh cluster, and the result kept under `name` and `version`: change
    the version whenever `prepare` makes something else. Another Kubernetes has copies of its own. `start_up`: seconds
    until a pod is Ready, from then on.
    """
    folder = (cache or cache_folder()) / "prepared"
    saved = folder / f"{name}-{version}-kubernetes-{binaries.kubernetes}"
    if not saved.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / f".{saved.name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # whoever comes second finds it made
            if not saved.is_dir():
                _made(binaries, saved, prepare)
    return ControlPlane.start(binaries, saved=saved, start_up=start_up)


def _made(binaries: Binaries, saved: Path, prepare: Callable[[Cluster], None]) -> None:
    with ControlPlane.start(binaries) as plane:
        prepare(Cluster(plane.kubeconfig, plane=plane))
        plane.save(saved)
