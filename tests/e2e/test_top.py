"""`trimtab top` and `trimtab savings` on a real control plane, with a compactor that drains a node."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.controlplane import environ
from tests.controlplane.cluster import Cluster
from tests.e2e.compactors import compactor, nodes, noted, pool
from tests.reasons import has_facts

SLOW = {"testbed.trimtab.dev/ready-after": "1s"}


def run(cluster: Cluster, *words: str) -> str:
    command = [sys.executable, "-m", "trimtab", *words]
    login = ("--kubeconfig", str(cluster.kubeconfig), "--system-namespace", cluster.namespace)
    result = subprocess.run([*command, *login], capture_output=True, text=True, env=environ.plain(), check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_top_shows_what_is_next_and_savings_what_was_removed(cluster: Cluster, tmp_path: Path) -> None:
    name = f"top-{cluster.namespace[-5:]}"
    cluster.pool(name, nodes=3, cpu="4", memory="16Gi")
    cluster.deployment("app", replicas=3, cpu="600m", annotations=SLOW, spec={"nodeSelector": {"pool": name}})
    cluster.eventually(lambda: len(cluster.running()) == 3, within=60)
    cluster.apply(pool(cluster, name, mode="rehearse"))
    with compactor(cluster, tmp_path, MOVE_COOLDOWN_SECONDS="0"):
        cluster.eventually(lambda: "next #1" in run(cluster, "top", "--once"), within=40)
        shown = " ".join(run(cluster, "top", "--once", "--pool", name).split())
        assert f"{name}: drained next: " in shown
        assert has_facts(shown, "waits for", "mode: act", "ConfigMap", "mode rehearse")
        assert "0 nodes were removed" in run(cluster, "savings")
        cluster.apply(pool(cluster, name, pace={"drains": 1}))
        emptied = cluster.eventually(
            lambda: [node for node in nodes(cluster, name) if (noted(node) or {}).get("emptied")], within=60
        )
        cluster.delete("Node", emptied[0]["metadata"]["name"])
        cluster.eventually(lambda: "1 node was removed" in run(cluster, "savings"), within=30)
        report = json.loads(run(cluster, "savings", "--since", "1d", "-o", "json"))
    assert [(part["name"], part["nodes"]) for part in report["pools"]] == [(name, 1)]
    assert [part["name"] for part in report["teams"]] == [cluster.namespace]
    assert report["total"]["saves"] == report["teams"][0]["saves"]


@pytest.mark.parametrize(("columns", "lines"), [(60, 20), (80, 24), (160, 50)])
def test_the_screen_is_drawn_on_a_terminal_and_q_ends_it(cluster: Cluster, columns: int, lines: int) -> None:
    cluster.pool(f"screen-{cluster.namespace[-5:]}", nodes=2, cpu="4", memory="16Gi")
    process, hand = pty.fork()
    if process == 0:
        login = ["--kubeconfig", str(cluster.kubeconfig), "--system-namespace", cluster.namespace, "--interval", "1"]
        os.execve(
            sys.executable,
            [sys.executable, "-m", "trimtab", "top", *login],
            {**environ.plain(), "TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": str(lines)},
        )
    fcntl.ioctl(hand, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    shown, deadline, request = b"", time.monotonic() + 60, False
    while time.monotonic() < deadline:
        ready, _, _ = select.select([hand], [], [], 0.5)
        try:
            shown += os.read(hand, 1 << 16) if ready else b""
        except OSError:
            break  # the process has closed its terminal
        if b"NODE" in shown and b"Quit" in shown and not request:
            request = True
            os.write(hand, b"q")
    _, status = os.waitpid(process, 0)
    os.close(hand)
    assert os.waitstatus_to_exitcode(status) == 0
    assert request
    assert f"screen-{cluster.namespace[-5:]}".encode() in shown
