"""What does it cost to know every pod, beside the official client's typed list?

    make bench-watch        the first run makes a cluster of 20 000 pods (about 15 minutes), later ones start there;
                            BRIEF=1: 2 000 pods

The last line is `RESULT list_cpu_ratio=… rss_ratio=… event_cpu_us=… event_ratio=… outage_cpu_s=…`; ratios are theirs
to ours, per pod or event, each the best of its runs in fresh processes. Times differ between machines of one kind by a
factor of two; ratios of one run do not.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

from tests.bench import population
from tests.bench.results import choose_size, report_result
from tests.bench.stub import Stub
from tests.controlplane import binaries, prepared
from tests.controlplane.cluster import Cluster

ROOT = Path(__file__).parents[2]
EVENTS = choose_size(20_000, 4_000)
TYPED_EVENTS = choose_size(2_000, 400)
"""Of the official client, which takes milliseconds for each."""
RUNS = choose_size(2, 1)

Figures = dict[str, float]


def main() -> None:
    with prepared.start(binaries.find(), "bench-pods", population.VERSION, population.populate) as plane:
        kubeconfig = str(plane.kubeconfig)
        pods = Cluster(plane.kubeconfig, plane=plane).api.request("GET", "/api/v1/pods", limit=300)["items"]
        size = sum(len(json.dumps(pod)) for pod in pods) / len(pods)
        print(f"Kubernetes {plane.binaries.kubernetes}; a pod is {size / 1024:.1f} KiB of JSON on average\n")
        figures = {how: _best(how, kubeconfig) for how in _ways()}
    typed = figures["typed"]
    ours = figures["planned"]
    events, theirs, outage = _events(pods), _events(pods, "typed-event", TYPED_EVENTS), measured("outage", _nobody())
    print(
        f"\none event: {events['cpu_us']:.1f} µs of CPU, {events['events'] / events['wall_s']:,.0f} a second;"
        f" the official client's typed watch {theirs['cpu_us']:.1f} µs"
    )
    print(f"ten seconds of outage, {outage['lists']:.0f} lists: {outage['cpu_s']:.4f} s of CPU")
    report_result(
        "watch",
        f"list_cpu_ratio={per_pod(typed, 'cpu_s') / per_pod(ours, 'cpu_s'):.1f}"
        f" rss_ratio={per_pod(typed, 'held_mib') / per_pod(ours, 'held_mib'):.1f}"
        f" event_cpu_us={events['cpu_us']:.1f}"
        f" event_ratio={theirs['cpu_us'] / events['cpu_us']:.1f} outage_cpu_s={outage['cpu_s']:.4f}",
        broken={},
    )


def _ways() -> list[str]:
    """Shapes, the same by a streaming list, the pods that plans take, and the official client's models."""
    return ["ours", "streamed", "planned", "typed"]


def _best(how: str, kubeconfig: str) -> Figures:
    runs = [measured(how, kubeconfig) for _ in range(1 if how == "typed" else RUNS)]
    best = min(runs, key=lambda run: run["cpu_s"])
    thousand = best["pods"] / 1000
    print(
        f"{how:9} {best['pods']:,.0f} pods: {best['cpu_s'] / thousand * 1000:7.1f} ms CPU,"
        f" {best['held_mib'] / thousand:7.2f} MiB held, {best['peak_mib'] / thousand:7.2f} MiB at most per 1000;"
        f" {best['wall_s']:.1f} s",
        flush=True,
    )
    return best


def _events(pods: list[dict[str, object]], how: str = "event", count: int = EVENTS) -> Figures:
    stub = Stub(pods, count)
    stub.start()
    return min((measured(how, stub.url, str(count)) for _ in range(RUNS)), key=lambda run: run["cpu_us"])


def measured(*arguments: str) -> Figures:
    """In a fresh process."""
    argv = [sys.executable, "-m", "tests.bench.measured", *arguments]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def per_pod(run: Figures, what: str) -> float:
    return run[what] / run["pods"]


def _nobody() -> str:
    """An address at which nobody answers."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"http://127.0.0.1:{free.getsockname()[1]}"


if __name__ == "__main__":
    main()
