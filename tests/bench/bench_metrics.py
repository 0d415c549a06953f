"""What do custom metrics of 1 000 pods cost, and what do pods that hang take from others? `make bench-metrics`, about
twelve minutes.

Two replicas as they are installed, with their default rhythm: each scrapes every pod once a minute (20 kB of text,
gzip, verified TLS, kept-alive connections) and answers what 20 HPAs ask every 15 seconds. A tenth of the pods'
containers is restarted meanwhile: a rate that is more than 5 % above the pod's own, or below it once both samples are
of the new container, is wrong. Pods and API server are played by other processes, whose cost is not counted.

Then, with a rhythm that is four times as fast, one replica scrapes 400 pods of four namespaces, while 300 or 1 000 pods
of 1, 2 or 40 other namespaces accept connections and never respond. `fair_share` is the least, over these six cases,
over time and over the four namespaces, of the share of pods whose value is younger than two intervals.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import random
import signal
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

import certs
from tests.bench.metrics_pods import address_of, hanging_address, hanging_pods, rate_of
from tests.bench.results import choose_size, read_knob, report_result
from tests.bench.servers import cpu
from tests.controlplane import environ
from tests.controlplane.certificates import Authority, Pair
from trimtab.installation.processes.metrics_api import RULES
from trimtab.metricsapi.request_header import CONFIG_NAME
from trimtab.metricsapi.settings import Settings
from trimtab.runtime.environment import variable_name

ROOT = Path(__file__).resolve().parents[2]
PODS = int(read_knob("PODS", choose_size("1000", "200")))
SECONDS = float(read_knob("SECONDS", choose_size("180", "30")))
BODY_BYTES, REPLICAS, WORKLOADS = 20_000, 2, 20
HPA_SECONDS = 15.0
HANGING, TENANTS = (300, 1000), (1, 2, 40)
FAIR_PODS, FAIR_NAMESPACES = 400, 4
HASTE = 4
"""How many times faster than by default everything is while pods hang."""
FAIR_INTERVALS = 5
"""How many intervals each case is measured."""
NAMESPACE, METRIC, SERVER_NAME = "shop", "http_requests", "pods.shop.svc"
TOLERANCE = 0.05
BOOKMARK_SECONDS = 30.0


class PlayedApi:
    """What replicas read of an API server: running pods, rules, the aggregation layer; every access is allowed."""

    def __init__(self, rules: dict[str, Any], client_ca: str, pods: list[dict[str, Any]]) -> None:
        self._list = json.dumps({"metadata": {"resourceVersion": "1"}, "items": pods}).encode()
        header = {"requestheader-client-ca-file": client_ca, "requestheader-allowed-names": '["front-proxy"]'}
        self._config_maps = {RULES: {"rules.yaml": yaml.safe_dump(rules)}, CONFIG_NAME: header}
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        played = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if "watch=1" in self.path or "watch=true" in self.path:
                    self._watch()
                elif "/configmaps/" in self.path:
                    name = self.path.rpartition("/")[2]
                    data = {"metadata": {"name": name, "resourceVersion": "1"}, "data": played._config_maps[name]}
                    self._answer(json.dumps(data).encode())
                else:
                    self._answer(played._list)

            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._answer(json.dumps({**review, "status": {"allowed": True}}).encode())

            def _watch(self) -> None:
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                line = json.dumps({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "1"}}}) + "\n"
                try:
                    while True:
                        self.wfile.write(f"{len(line):x}\r\n{line}\r\n".encode())
                        time.sleep(BOOKMARK_SECONDS)
                except OSError:
                    self.close_connection = True

            def _answer(self, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        return Handler


def _render_pod(number: int, namespace: str = NAMESPACE, ip: str = "") -> dict[str, Any]:
    """Return a running pod as an API server lists it; its size is that of a small one."""
    labels = {"app": f"web-{number % WORKLOADS}", "tier": "web", "pod-template-hash": "5d4f8c7b9"}
    meta = {"name": f"web-{number}", "namespace": namespace, "uid": f"uid-{number}", "resourceVersion": "1"}
    spec = {"nodeName": "node", "containers": [{"name": "main", "image": "web", "env": [{"name": "A", "value": "b"}]}]}
    return {
        "metadata": {**meta, "labels": labels},
        "spec": spec,
        "status": {"phase": "Running", "podIP": ip or address_of(number)},
    }


@dataclass
class Replica:
    """One process of the metrics API."""

    process: subprocess.Popen[bytes]
    port: int
    connection: http.client.HTTPSConnection

    @property
    def pids(self) -> tuple[int, ...]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return (self.process.pid, *map(int, children))

    def read_cpu(self) -> float:
        """Return seconds of user and system time so far."""
        return sum(map(cpu, self.pids))

    def read_memory(self) -> float:
        """Return MiB that its processes hold; what they share counts once."""
        rollups = [Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() for pid in self.pids]
        return sum(int(line.split()[1]) for lines in rollups for line in lines if line.startswith("Pss:")) / 1024

    def ask(self, path: str) -> tuple[int, Any]:
        """Return status and document, as the aggregation layer asks for an HPA."""
        headers = {"X-Remote-User": "system:serviceaccount:kube-system:horizontal-pod-autoscaler"}
        self.connection.request("GET", path, headers=headers)
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())


@contextmanager
def start_pods(count: int, authority: Authority) -> Iterator[tuple[subprocess.Popen[str], int]]:
    pair = authority.server("pods", [SERVER_NAME])
    command = [
        sys.executable,
        "-m",
        "tests.bench.metrics_pods",
        str(count),
        pair.certificate,
        pair.key,
        str(BODY_BYTES),
    ]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process, int(process.stdout.readline())
    finally:
        process.kill()
        process.wait(10)


@contextmanager
def start_replica(home: Path, api: PlayedApi, aggregator: Pair, **settings: object) -> Iterator[Replica]:
    """One replica with the settings that `install` gives it, but for the addresses and files of this machine."""
    home.mkdir()
    certs.write_folder(home / "certs", certs.issue(["localhost", "127.0.0.1"], now=datetime.now(UTC)))
    url = f"http://127.0.0.1:{api.server.server_address[1]}"
    login = {
        "clusters": [{"name": "a", "cluster": {"server": url}}],
        "users": [{"name": "a", "user": {}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    }
    (home / "kubeconfig").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **login}))
    own = {
        "listen": "127.0.0.1:0",
        "kubeconfig": str(home / "kubeconfig"),
        "certs_folder": str(home / "certs"),
        "client_ca_file": str(home / "aggregation.crt"),
        "scrape_files_folder": str(home.parent),
        "ready_file": str(home / "ready.json"),
        "pod_networks": "127.0.0.0/8",
        **{name: str(value) for name, value in settings.items()},
    }
    surroundings = {
        **environ.plain(),
        "TRIMTAB_LOG_FORMAT": "json",
        **{variable_name("metrics_api", name): value for name, value in own.items()},
    }
    with (home / "log").open("wb") as log:
        command = [sys.executable, "-m", "trimtab", "metrics-api"]
        process = subprocess.Popen(command, cwd=ROOT, env=surroundings, stderr=log, stdout=log)
    try:
        deadline = time.monotonic() + 60
        while not (home / "ready.json").exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"a replica did not start: {(home / 'log').read_text()[-2000:]}")
            time.sleep(0.1)
        port = int(json.loads((home / "ready.json").read_text())["port"])
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.load_cert_chain(aggregator.certificate, aggregator.key)
        yield Replica(process, port, http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=context))
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait(20)


@dataclass
class Judge:
    """Compares what is served with what the pods really do."""

    restarted: dict[int, float] = field(default_factory=dict)
    """Pod → when its container was restarted, by the wall clock."""
    values: int = 0
    missing: int = 0
    wrong: int = 0
    latencies: list[float] = field(default_factory=list)

    def ask_all(self, replica: Replica, workload: int) -> None:
        """One request as an HPA sends it, and a look at every value of the answer."""
        selector = f"labelSelector=app%3Dweb-{workload}"
        path = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{NAMESPACE}/pods/*/{METRIC}?{selector}"
        begun = time.perf_counter()
        status, document = replica.ask(path)
        self.latencies.append(time.perf_counter() - begun)
        assert status == 200, document
        self.values += len(document["items"])
        self.missing += len(range(workload, PODS, WORKLOADS)) - len(document["items"])
        self.wrong += sum(map(self._is_wrong, document["items"]))

    def _is_wrong(self, item: dict[str, Any]) -> bool:
        number = int(item["describedObject"]["name"].removeprefix("web-"))
        text, real = item["value"], rate_of(number)
        rate = float(text.removesuffix("m")) / (1000 if text.endswith("m") else 1)
        newest = datetime.fromisoformat(item["timestamp"].replace("Z", "+00:00")).timestamp()
        restart = self.restarted.get(number, 0.0)
        # The requests between the last scrape and the restart are lost: until both samples are of the new container, a
        # rate may be too low, and never too high. Timestamps are cut to seconds.
        is_mixed = newest - item["windowSeconds"] - 2 < restart < newest + 1
        return rate > real * (1 + TOLERANCE) or (not is_mixed and rate < real * (1 - TOLERANCE))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        authority, front = Authority(home, "pods-ca"), Authority(home, "front-ca")
        aggregator = front.client("front-proxy", "front-proxy")
        with start_pods(PODS, authority) as (pods, port):
            rules, shown = _rules(authority, port, [NAMESPACE]), [_render_pod(number) for number in range(PODS)]
            api = PlayedApi(rules, front.certificate.read_text(), shown)
            with ExitStack() as stack:
                homes = [home / f"replica-{number}" for number in range(REPLICAS)]
                replicas = tuple(stack.enter_context(start_replica(one, api, aggregator)) for one in homes)
                cost = _measure(replicas, pods)
        shares = []
        with start_pods(FAIR_PODS, authority) as (_, port), hanging_pods(max(HANGING), port):
            rules = _rules(authority, port, ["*"])
            for hanging, tenants in itertools.product(HANGING, TENANTS):
                api = PlayedApi(rules, front.certificate.read_text(), list(_render_crowd(hanging, tenants)))
                with start_replica(home / f"fair-{hanging}-{tenants}", api, aggregator, **_hasty_settings()) as replica:
                    shares.append(_measure_fair_share(replica))
                print(f"{hanging} pods hang in {tenants} namespaces: fair_share={shares[-1]:.3f}", flush=True)
    report_result("metrics", f"{cost} fair_share={min(shares):.3f}", broken={})


def _rules(authority: Authority, port: int, namespaces: list[str]) -> dict[str, Any]:
    endpoint = {"port": port, "scheme": "https", "ca": authority.certificate.name, "serverName": SERVER_NAME}
    rule = {
        "name": METRIC,
        "from": "scrape",
        "kind": "rate",
        "namespaces": namespaces,
        "pods": {"tier": "web"},
        "endpoint": endpoint,
        "series": "http_requests_total",
    }
    return {"rules": [rule]}


def _hasty_settings() -> dict[str, object]:
    """Return the default times, divided by `HASTE`."""
    names = ("scrape_interval_seconds", "scrape_timeout_seconds", "connect_timeout_seconds", "min_sample_gap_seconds")
    return {name: getattr(Settings(), name) / HASTE for name in names}


def _render_crowd(hanging: int, tenants: int) -> Iterator[dict[str, Any]]:
    """Yield the pods of four namespaces that respond, and those of the tenants that do not."""
    for number in range(FAIR_PODS):
        yield _render_pod(number, f"{NAMESPACE}-{number % FAIR_NAMESPACES}")
    for number in range(hanging):
        yield _render_pod(FAIR_PODS + number, f"tenant-{number % tenants}", hanging_address(number))


def _measure_fair_share(replica: Replica) -> float:
    interval = Settings().scrape_interval_seconds / HASTE
    shares: list[float] = []
    # Two intervals, in which every pod that responds must have had its first two scrapes.
    time.sleep(2 * interval)
    end = time.monotonic() + FAIR_INTERVALS * interval
    while time.monotonic() < end:
        for number in range(FAIR_NAMESPACES):
            _, document = replica.ask(
                f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{NAMESPACE}-{number}/pods/*/{METRIC}"
            )
            ages = [
                time.time() - datetime.fromisoformat(item["timestamp"].replace("Z", "+00:00")).timestamp()
                for item in document["items"]
            ]
            shares.append(sum(age < 2 * interval for age in ages) / (FAIR_PODS // FAIR_NAMESPACES))
        time.sleep(1)
    return min(shares)


def _measure(replicas: tuple[Replica, ...], pods: subprocess.Popen[str]) -> str:
    """Return the figures of the result."""
    deadline = time.monotonic() + 180
    while not all(replica.ask("/readyz")[0] == 200 for replica in replicas):
        if time.monotonic() > deadline:
            raise SystemExit("the replicas are not ready after three minutes")
        time.sleep(1)
    # The second scrapes of new pods come early; from here on each pod is scraped once a minute.
    time.sleep(Settings().scrape_interval_seconds)
    judge, turn = Judge(), itertools.cycle(replicas)
    victims = iter(random.Random(7).sample(range(PODS), PODS // 10))
    before, begun = [replica.read_cpu() for replica in replicas], time.monotonic()
    assert pods.stdin is not None
    for number in itertools.count():
        due = begun + number * HPA_SECONDS / WORKLOADS
        if due > begun + SECONDS:
            break
        time.sleep(max(0.0, due - time.monotonic()))
        victim = next(victims, None) if number % 2 else None
        if victim is not None:
            print(victim, file=pods.stdin, flush=True)
            judge.restarted[victim] = time.time()
        judge.ask_all(next(turn), number % WORKLOADS)
    lasted = time.monotonic() - begun
    spent = [replica.read_cpu() - used for replica, used in zip(replicas, before, strict=True)]
    memory = [replica.read_memory() for replica in replicas]
    p99 = statistics.quantiles(judge.latencies, n=100)[98] * 1000
    for number, (used, holding) in enumerate(zip(spent, memory, strict=True)):
        print(f"replica {number}: {used * 1000 / lasted:.1f} mcore, {holding:.0f} MiB")
    print(f"{judge.values} values read, {judge.missing} withheld, {len(judge.restarted)} containers restarted")
    return (
        f"cpu_mcore={sum(spent) * 1000 / lasted:.1f} rss_mib={max(memory):.0f} p99_ms={p99:.1f} "
        f"wrong_after_reset={judge.wrong}"
    )


if __name__ == "__main__":
    assert os.path.isdir("/proc/self"), "needs Linux"
    main()
