"""The real service on this machine: certificates, a process, and a client as the API server is one.

`trimtab demo`: the main job end to end on this machine, without a cluster.
"""

import base64
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import click
import jsonpatch
import msgspec
import urllib3
from rich.console import Console
from rich.text import Text

import certs
from trimtab.admission.apiserver.admission_chain import admit
from trimtab.admission.handler import told
from trimtab.admission.json_patch import Operation, plain
from trimtab.admission.pod_templates import PodTemplateLocation
from trimtab.admission.pod_templates import templates as templates_of
from trimtab.admission.preview import Preview, preview
from trimtab.cli import output
from trimtab.cli.admit.report import AdmitReport, pod_report, totals
from trimtab.cli.admit.table import draw
from trimtab.cli.demo import compaction, sample_pool
from trimtab.cli.main import FAILED
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.snapshot import build
from trimtab.cluster.yaml_documents import read
from trimtab.policy.cluster_facts import ClusterFacts, from_snapshot
from trimtab.policy.load import load_policies
from trimtab.runtime import clock
from trimtab.runtime.environment import variable

_PATIENCE = 30
"""Seconds the service may take to come up."""


class WebhookDidNotStart(Exception):
    """The service did not come up; the text is what it said."""


class ReviewClient:
    """Sends AdmissionReviews over HTTPS, trusting only the authority issued for this run."""

    def __init__(self, url: str, authority: Path) -> None:
        self.url = url
        self.seconds: list[float] = []
        """How long each review took, connection kept."""
        self._http = urllib3.PoolManager(ca_certs=str(authority), retries=False, timeout=10.0)

    def review(self, pod: Pod, namespace: str) -> tuple[Operation, ...]:
        """The patch the service answers for this pod's creation."""
        body = json.dumps(_review(plain(pod), namespace)).encode()
        began = time.perf_counter()
        reply = self._http.request(
            "POST", f"{self.url}/mutate?timeout=2s", body=body, headers={"Content-Type": "application/json"}
        )
        self.seconds.append(time.perf_counter() - began)
        response = json.loads(reply.data)["response"]
        if "patch" not in response:
            return ()
        found: list[Operation] = json.loads(base64.b64decode(response["patch"]))
        return tuple(found)

    def admit(self, pod: Pod, namespace: str) -> Pod:
        """The pod after the service's patch, applied as the API server would."""
        patched = jsonpatch.apply_patch(plain(pod), list(self.review(pod, namespace)))
        return msgspec.convert(patched, Pod)


def _review(pod: dict[str, Any], namespace: str) -> dict[str, Any]:
    what = {"group": "", "version": "v1"}
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": str(uuid.uuid4()),
            "kind": {**what, "kind": "Pod"},
            "resource": {**what, "resource": "pods"},
            "namespace": namespace,
            "operation": "CREATE",
            "object": {"apiVersion": "v1", "kind": "Pod", **pod},
        },
    }


@contextmanager
def running(folder: Path, policies: Path, cluster: Path) -> Iterator[ReviewClient]:
    """The webhook on a free port of this machine, stopped at the end. Raises DidNotStart."""
    pair, ready = folder / "certs", folder / "ready.json"
    certs.write(pair, certs.issue(["localhost", "127.0.0.1"], now=clock.utc()))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TRIMTAB_")}
    settings = {
        "LISTEN": "127.0.0.1:0", "CERTS_FOLDER": pair, "POLICIES": policies, "CLUSTER": cluster, "READY_FILE": ready,
        "LOG_FORMAT": "json", "SHUTDOWN_DELAY_SECONDS": 0, "GRACEFUL_TIMEOUT_SECONDS": 5,
    }  # fmt: skip
    environ |= {variable("webhook", name.lower()): str(value) for name, value in settings.items()}
    with (folder / "webhook.log").open("w+", encoding="utf-8") as log:
        process = subprocess.Popen([sys.executable, "-m", "trimtab", "webhook"], env=environ, stdout=log, stderr=log)
        try:
            yield ReviewClient(_url(process, ready, log.name), pair / "ca.crt")
        finally:
            process.terminate()
            process.wait(timeout=_PATIENCE)


def _url(process: "subprocess.Popen[bytes]", ready: Path, log: str) -> str:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if ready.exists():
            return str(json.loads(ready.read_text())["url"])
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise WebhookDidNotStart(Path(log).read_text(encoding="utf-8") or "the webhook said nothing")


_FILES = ("world.yaml", "shop.yaml", "policies.yaml")


@click.command("demo")
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), help="Leave the demo's files here.")
def verb(keep: Path | None) -> None:
    """The main job end to end on this machine, without a cluster.

    Issues certificates, starts the real webhook on a free port, sends it the pods of a small shop as a real API
    server would (HTTPS, AdmissionReview v1), and shows what becomes of them. Then plans and simulates a small pool, and
    lets it go from a rehearsal to the real thing.
    """
    console = output.terminal()
    with tempfile.TemporaryDirectory(prefix="trimtab-demo-") as scratch:
        folder = keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for name in _FILES:
            (folder / name).write_bytes((resources.files("trimtab.cli.demo") / name).read_bytes())
        try:
            _run(console, folder)
        except WebhookDidNotStart as error:
            click.echo(f"The webhook did not start:\n{error}", err=True)
            sys.exit(FAILED)
        (folder / "pool.json").write_bytes(sample_pool.snapshot())
    sample_pool.show(console)
    compaction.show(console, sample_pool.asked())
    _onwards(console)


def _run(console: Console, folder: Path) -> None:
    world, shop, rules = (read(name, (folder / name).read_bytes()) for name in _FILES)
    templates = [t for document in shop.documents for t in templates_of(document) if isinstance(t, PodTemplateLocation)]
    facts = from_snapshot(build([*world.documents, *shop.documents]).snapshot)
    policies = load_policies([("policies.yaml", (folder / "policies.yaml").read_bytes())]).policies
    snapshot = folder / "cluster.yaml"
    snapshot.write_bytes(b"---\n".join((folder / name).read_bytes() for name in ("world.yaml", "shop.yaml")))
    console.print(Text(f"{len(rules.documents)} policies, {len(templates)} workloads. Starting the webhook …"))
    with running(folder, folder / "policies.yaml", snapshot) as client:
        previews = [preview(t.pod, policies, t.facts(facts), t.namespace) for t in templates]
        agreed = [_agrees(client, found, made, facts) for found, made in zip(templates, previews, strict=True)]
    pods = [pod_report(t, made, _warnings(made)) for t, made in zip(templates, previews, strict=True)]
    report = AdmitReport(policies=[p.name for p in policies.all], notes=[], pods=pods, totals=totals(pods))
    draw(console, report, explain=False)
    _served(console, client, all(agreed))


def _agrees(client: ReviewClient, found: PodTemplateLocation, made: Preview, facts: ClusterFacts) -> bool:
    """Is the pod stored with the service's answers the one that the offline decision promises?"""
    stored = admit(found.pod, found.facts(facts), found.namespace, lambda pod: client.admit(pod, found.namespace))
    return getattr(stored, "pod", stored) == getattr(made.result, "pod", made.result)


def _warnings(made: Preview) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for call in made.calls for text in told(call.decision)))


def _served(console: Console, client: ReviewClient, agreed: bool) -> None:
    usual = statistics.median(client.seconds) * 1000
    console.print(
        Text.assemble(
            f"\n{len(client.seconds)} reviews were answered by {client.url} over TLS, {usual:.1f} ms each (median). ",
            ("They match the offline decision.", "green")
            if agreed
            else ("They DIFFER from the offline decision: our bug.", "red"),
        )
    )
    if not agreed:
        sys.exit(FAILED)


def _onwards(console: Console) -> None:
    console.print(
        "\n[bold]Where to go next[/]\n"
        "  trimtab admit -f your-manifests.yaml            the same for what you run, nothing is changed anywhere\n"
        "  trimtab admit -f your-manifests.yaml --explain  with everything that was left alone, and why\n"
        "  trimtab policies list                           the policies we ship\n"
        "  trimtab policies explain NAME                   what one of them does\n"
        "  trimtab plan --cluster snapshot.yaml            which of your nodes can go, and why the others stay\n"
        "  docs/how-to/write-a-policy.md                   your own in ten minutes",
        highlight=False,
    )
