"""`make testbed`: a cluster of fake nodes to try things on. It stays until Ctrl-C, and leaves nothing behind.

A real control plane; six nodes of one pool, played by kwok, with the tutorial's shop on them; a stand-in for the
cluster autoscaler that reports, takes nodes that stay empty and adds one for pods that wait. `FOLDER/env` (default
`.testbed`), sourced by a shell, leads kubectl and trimtab there. `FOLDER/run PROCESS` runs a process of an installation
on this machine, because the nodes run nothing (run_process.sh).
"""

from __future__ import annotations

import shutil
import signal
import sys
import threading
from pathlib import Path

from tests.controlplane import binaries, objects, ports
from tests.controlplane.autoscaler import Autoscaler
from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane

POOL, NODES, TYPE = "web", 6, "n2-standard-4"
RUN = Path(__file__).parent / "run_process.sh"
SHOP = Path(__file__).parents[2] / "docs" / "tutorial" / "shop.yaml"
LABELS = {
    "cloud.google.com/gke-nodepool": POOL,
    "node.kubernetes.io/instance-type": TYPE,
    "topology.kubernetes.io/region": "europe-west4",  # a region with list prices
}


def main(folder: Path) -> None:
    finding = binaries.find()
    print("starting a control plane …", flush=True)
    with ControlPlane.start(finding) as plane:
        cluster = Cluster(plane.kubeconfig, plane=plane)
        print(f"making {NODES} nodes and a shop …", flush=True)
        cluster.pool(POOL, NODES, cpu="4", memory="16Gi", labels=LABELS)
        shop(cluster)
        with Autoscaler(cluster, group_of, lambda pod: added(cluster), unneeded=10.0):
            file = written(folder, plane, finding)
            print(f"ready: {NODES} nodes, and a shop on them; in another terminal: . {file}", flush=True)
            until_told()
    removed(folder)


def shop(cluster: Cluster) -> None:
    """Everything of it runs on return."""
    documents = objects.documents(SHOP.read_text(encoding="utf-8"))
    for result in documents:
        cluster.apply(result)
    expected_total = sum(
        each_result["spec"]["replicas"] for each_result in documents if each_result["kind"] == "Deployment"
    )
    inside = Cluster(cluster.kubeconfig, "team-shop")
    cluster.eventually(lambda: len(inside.running()) == expected_total, within=60, what="the shop runs")


def group_of(node: objects.Object) -> str:
    return str(node["metadata"]["labels"].get("pool", ""))


def added(cluster: Cluster) -> str:
    """One node more, as the pool has them."""
    there = {node["metadata"]["name"] for node in cluster.list("Node")}
    name = next(f"{POOL}-{number}" for number in range(NODES, 10 * NODES) if f"{POOL}-{number}" not in there)
    labels = {"pool": POOL, **LABELS}
    cluster.create(objects.node(name, cpu="4", memory="16Gi", pods=110, labels=labels, taints=()))
    return POOL


def written(folder: Path, plane: ControlPlane, binaries: Binaries) -> Path:
    """What a shell sources; and beside it what runs processes of an installation."""
    folder.mkdir(parents=True, exist_ok=True)
    programs = Path(binaries["kubectl"]).parent
    file = folder / "env"
    [port] = ports.free(1)
    settings = {"KUBECONFIG": plane.kubeconfig, "TESTBED": folder.resolve(), "TESTBED_WEBHOOK_PORT": port}
    exports = [f"export {name}={value}\n" for name, value in settings.items()]
    file.write_text("".join([*exports, f"export PATH={Path.cwd()}/.venv/bin:{programs}:$PATH\n"]), encoding="utf-8")
    shutil.copy(RUN, folder / "run")
    return file


def removed(folder: Path) -> None:
    """All that a test bed and `run` wrote there."""
    for name in ("env", "run"):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / "processes", ignore_errors=True)


def until_told() -> None:
    event = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: event.set())
    event.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(".testbed"))
