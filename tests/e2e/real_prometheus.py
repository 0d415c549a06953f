"""The real Prometheus, filled with two weeks of a made-up cluster before it starts.

A thousand containers under cAdvisor's names, a scrape every half hour. Of container n it is known what it used:
`base` cores, three times as much for six hours a day; memory `held`, twice as much for one scrape a day.
"""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.controlplane.ports import free

CONTAINERS = 1000
DAYS = 14
SCRAPE = 1800
START = 1767571200
"""2026-01-05T00:00:00Z."""
END = START + DAYS * 86400
MI = 1 << 20


@dataclass(frozen=True)
class Used:
    """What one container used."""

    number: int
    since: int = 0
    """Second at which it began; before the first scrape for nearly all."""
    cluster: str = ""
    """An external label; empty: none."""
    times: int = 1
    """How many times as much it used."""

    @property
    def workload(self) -> str:
        return f"app-{self.number:04}"

    @property
    def labels(self) -> str:
        pod = f"{self.workload}-7d4b9c6f5d-x2x4k"
        cluster = f'cluster="{self.cluster}",' if self.cluster else ""
        own = f'namespace="team-{self.number % 20}",pod="{pod}",container="app"'
        return f'{cluster}{own},image="registry/app",job="cadvisor"'

    @property
    def base(self) -> float:
        """Cores."""
        return (0.02 + self.number % 50 / 100) * self.times

    @property
    def held(self) -> int:
        """Bytes."""
        return (64 + self.number % 100 * 4) * MI * self.times

    def cores(self, at: int) -> float:
        return self.base * (3 if 9 * 3600 < at % 86400 <= 15 * 3600 else 1)

    def memory(self, at: int) -> int:
        return self.held * (2 if at % 86400 == 10 * 3600 else 1)


MAIN_CORES = 0.2
"""Cores of each `MainContainer`; three times as much for six hours a day."""


@dataclass(frozen=True)
class MainContainer(Used):
    """A container `main` of a Deployment in a namespace of the cluster's."""

    namespace: str = ""
    name: str = "web"

    @property
    def labels(self) -> str:
        pod = f"{self.name}-7d4b9c6f5d-x2x4k"
        return f'namespace="{self.namespace}",pod="{pod}",container="main",image="i",job="cadvisor"'

    @property
    def base(self) -> float:
        return MAIN_CORES


def everybody() -> list[Used]:
    return [Used(number) for number in range(CONTAINERS)]


def write(path: Path, used: list[Used], start: int = START) -> None:
    """OpenMetrics, as promtool reads it. Every container restarts once: its counter begins again at nothing."""
    scrapes = range(start, start + DAYS * 86400 + 1, SCRAPE)
    with path.open("w", encoding="ascii") as out:
        out.write("# TYPE container_cpu_usage_seconds counter\n")
        for one in used:
            counted, name = 0.0, f"container_cpu_usage_seconds_total{{{one.labels}}}"
            restart = start + 5 * 86400 + one.number % 48 * SCRAPE
            for at in (at for at in scrapes if at >= one.since):
                counted = 0.0 if at == restart else counted + one.cores(at) * SCRAPE
                out.write(f"{name} {counted:.3f} {at}\n")
        out.write("# TYPE container_memory_working_set_bytes gauge\n")
        for one in used:
            name = f"container_memory_working_set_bytes{{{one.labels}}}"
            for at in (at for at in scrapes if at >= one.since):
                out.write(f"{name} {one.memory(at)} {at}\n")
        out.write("# EOF\n")


def missing() -> str:
    """What has to be installed; empty where all of it is."""
    absent = [name for name in ("prometheus", "promtool") if shutil.which(name) is None]
    return f"needs {' and '.join(absent)}: apt-get install prometheus" if absent else ""


@contextmanager
def serving(
    folder: Path, used: list[Used], start: int = START, *, web: str = "", client: ssl.SSLContext | None = None
) -> Iterator[str]:
    """Its URL; two weeks from `start`. `web`: its web configuration; `client`: what its TLS asks of clients, None where
    it has none. Raises where it does not come up."""
    source = folder / "metrics.txt"
    write(source, used, start)
    with serving_file(folder, source, web=web, client=client) as url:
        yield url


@contextmanager
def serving_file(
    folder: Path, source: Path, *, web: str = "", client: ssl.SSLContext | None = None, rules: Sequence[Path] = ()
) -> Iterator[str]:
    """The same with the OpenMetrics of a file, which is removed, and these rules, evaluated each second."""
    data = folder / "data"
    command = ["promtool", "tsdb", "create-blocks-from", "--max-block-duration=1500h", "openmetrics", source, data]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    source.unlink()
    config = {"global": {"evaluation_interval": "1s"}, "rule_files": [str(rule) for rule in rules]}
    flags = []
    if web:
        (folder / "web.yml").write_text(web)
        flags.append(f"--web.config.file={folder / 'web.yml'}")
    with running(folder, config, *flags, client=client) as url:
        yield url


@contextmanager
def running(
    folder: Path, config: Mapping[str, Any], *flags: str, client: ssl.SSLContext | None = None
) -> Iterator[str]:
    """The URL of a server with this configuration, which keeps its data in the folder. Raises where it does not come
    up."""
    (folder / "prometheus.yml").write_text(json.dumps(config))
    (port,) = free(1)
    log = folder / "prometheus.log"
    with log.open("wb") as written:
        server = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                "--storage.tsdb.retention.time=10y",
                f"--web.listen-address=127.0.0.1:{port}",
                *flags,
            ],
            stdout=written,
            stderr=subprocess.STDOUT,
        )
        try:
            url = f"http://127.0.0.1:{port}" if client is None else f"https://localhost:{port}"
            ready(url, server, log, client)
            yield url
        finally:
            server.terminate()
            server.wait(30)


def ready(url: str, server: subprocess.Popen[bytes], log: Path, client: ssl.SSLContext | None = None) -> None:
    """Wait until it answers, be it that it wants a password."""
    for _ in range(300):
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=5, context=client):
                return
        except urllib.error.HTTPError as error:
            if error.code == 401:
                return
            time.sleep(0.1)
        except (urllib.error.URLError, OSError):
            assert server.poll() is None, log.read_text()[-2000:]
            time.sleep(0.1)
    raise AssertionError(log.read_text()[-2000:])
