"""Every command of the pages for day two, run in their order against an installation."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from docs.pages.reason_codes import product_codes
from tests.autoscaling.replay.simulated_captures import record_captures
from tests.controlplane import environ
from tests.e2e.installed import Installed
from tests.e2e.pages import ROOT, blocks
from tests.reasons import has_facts

HOW_TO = "docs/how-to"
POLICY = """
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: no-cpu-limits}
spec: {match: {owners: [Deployment]}, actions: {limits: {cpu: remove}}}
"""


class Desk:
    """A shell with `trimtab` and `kubectl` for this cluster, in a folder that looks like the repository's root."""

    def __init__(self, here: Installed, home: Path) -> None:
        self.here, self.home = here, home
        tools = home / "bin"
        tools.mkdir()
        (tools / "kubectl").symlink_to(here.cluster.plane.binaries["kubectl"])
        (tools / "trimtab").write_text(f'#!/bin/sh\nexec {sys.executable} -m trimtab "$@"\n')
        (tools / "trimtab").chmod(stat.S_IRWXU)
        for name in ("deploy", "policies"):
            (home / name).symlink_to(ROOT / name)
        (home / "policies.yaml").write_text(POLICY)
        self._manifests()
        path = [str(tools), str(Path(sys.executable).parent), os.environ["PATH"]]
        self.environment = {
            **environ.plain(),
            "KUBECONFIG": str(here.cluster.kubeconfig),
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "160",
            "PATH": os.pathsep.join(path),
        }

    def _manifests(self) -> None:
        container = {"name": "app", "image": "app:1", "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}}
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
        spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
        (self.home / "web.yaml").write_text(json.dumps(web))
        self.here.cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}})
        self.here.cluster.apply({**web, "metadata": {"name": "web", "namespace": "team-a"}})
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        aims = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}
        scaled = {"scaleTargetRef": target, "maxReplicas": 3, "metrics": [{"type": "Resource", "resource": aims}]}
        meta = {"name": "web", "namespace": "team-a"}
        self.here.cluster.apply(
            {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": meta, "spec": scaled}
        )

    def add_cart(self) -> None:
        """The pod that the page about refusals asks about; without an owner, and on no node."""
        pod = {"containers": [{"name": "app", "image": "app:1"}], "schedulerName": "nobody"}
        meta = {"name": "cart-5d4f-x2x7k", "namespace": "shop"}
        self.here.cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        self.here.cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod})

    def types(self, script: str) -> str:
        """What came of it; a command that fails fails the test."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.home,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def page(self, name: str) -> list[str]:
        """All of a page, block by block; what each printed."""
        return [self.types(block) for block in blocks(f"{HOW_TO}/{name}.md", "sh")]


@pytest.fixture(scope="module")
def desk(here: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    yield Desk(here, tmp_path_factory.mktemp("desk"))
    for namespace in ("team-a", "shop"):
        here.cluster.delete("Namespace", namespace)


def test_read_a_refusal(desk: Desk) -> None:
    desk.add_cart()
    names, offline, why, running, explained, counted = desk.page("runbooks")
    assert "What to do" in names
    assert has_facts(offline, "policy removes", "limit")
    assert "shop/cart-5d4f-x2x7k" in why
    assert has_facts(running, "running pods lack")
    assert "pod-without-owner" in explained
    assert "shop/debug-shell" in explained
    assert {line.split()[1] for line in counted.splitlines()} <= {code.name for code in product_codes()}


def test_every_code_that_the_page_names_is_one() -> None:
    page = (ROOT / HOW_TO / "runbooks.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| it ")]
    named = {name for row in rows for name in re.findall("`([a-z-]+)`", row)}
    assert len(named) >= 8
    assert named <= {code.name for code in product_codes()}


def test_coexist(desk: Desk) -> None:
    by_request, karpenters, order = desk.page("live-with-others")
    assert "team-a web" in by_request.splitlines()  # beside those of other tests of this cluster
    assert karpenters == ""
    assert "trimtab" in order


def test_upgrade(desk: Desk) -> None:
    upgrade, restart, brake = blocks(f"{HOW_TO}/install-in-a-cluster.md", "sh", "Upgrade and downgrade")
    assert "CustomResourceDefinition" in desk.types(upgrade)
    desk.here.apply()  # the Service of this installation is another than a cluster's
    desk.here.cluster.eventually(desk.here.calls, within=60, what="called again")
    desk.types(restart)
    braked = desk.types(brake)
    assert "patched" in braked
    desk.here.cluster.eventually(lambda: not desk.here.calls(), what="policies only warn")
    assert _mode(desk, "apply") == "apply"
    desk.here.cluster.eventually(desk.here.calls, what="policies apply")


def _mode(desk: Desk, mode: str) -> Any:
    result = desk.here.cluster.patch("PodPolicy", "e2e-sizes", {"spec": {"mode": mode}})
    return result["spec"]["mode"]


def test_switch_everything_off(desk: Desk) -> None:
    cluster, scripts = desk.here.cluster, iter(blocks(f"{HOW_TO}/switch-everything-off.md", "sh"))
    assert desk.here.calls()
    desk.types(next(scripts))
    cluster.eventually(lambda: not desk.here.calls(), within=10, what="pods let through unchanged")
    assert all(replica.metric("trimtab_paused") == 1 for replica in desk.here.replicas)
    assert "paused" in desk.types(next(scripts))
    desk.types(next(scripts))
    cluster.eventually(desk.here.calls, within=10, what="pods changed again")
    desk.types(next(scripts))
    cluster.eventually(lambda: not desk.here.calls(), what="nobody calls us")
    desk.types("trimtab install --apply")
    desk.here.apply()  # the Service of this installation is another than a cluster's
    cluster.eventually(desk.here.calls, within=60, what="called again")
    for script in scripts:
        desk.types(script)


def test_the_mild_ways_of_the_table(desk: Desk) -> None:
    desk.types("kubectl label namespace team-a trimtab.dev/opt-out=true")
    desk.types('kubectl patch podpolicy e2e-sizes --type=merge -p \'{"spec":{"mode":"warn"}}\'')
    desk.here.cluster.eventually(lambda: not desk.here.calls(), what="the policy only warns")
    _mode(desk, "apply")


def test_before_you_let_it_act(desk: Desk) -> None:
    capture, replay, show, expected = blocks(f"{HOW_TO}/before-you-let-it-act.md", "sh")
    short = capture.replace("5m", "1s").replace("7d", "2s").replace("captures", "live-captures")
    assert short.count("1s") == short.count("2s") == 1
    desk.types(short)
    assert len(list((desk.home / "live-captures").iterdir())) == 1
    record_captures(desk.home / "captures")
    assert has_facts(desk.types(replay), "core hours", "evictions")
    assert "<svg" in (desk.home / "last-week.html").read_text()
    # A plan is about nodes; the other pages of this file want none.
    nodes = desk.here.cluster.pool("shown", nodes=2)
    try:
        desk.types(show)
    finally:
        for name in nodes:
            desk.here.cluster.delete("Node", name)
    page = (desk.home / "report.html").read_text()
    assert all(fact in page for fact in ("would have cost", "can be drained", "works against each other"))
    assert "nothing was promised" in desk.types(expected)
