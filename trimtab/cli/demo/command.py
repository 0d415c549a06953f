"""The command line of `trimtab demo`: it runs the real webhook on this machine, with a client like the API server."""

import base64
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated

import click
import jsonpatch
import msgspec
import urllib3
from rich.console import Console
from rich.text import Text

import certs
from trimtab.admission.admission_context import AdmissionContext
from trimtab.admission.apiserver.admission_chain import run_admission_chain
from trimtab.admission.handler import decision_warnings
from trimtab.admission.json_patch import Operation, to_plain_json
from trimtab.admission.pod_templates import PodTemplateLocation
from trimtab.admission.pod_templates import read_templates as templates_of
from trimtab.admission.preview import Preview, preview_admission
from trimtab.cli import output
from trimtab.cli.demo import compaction, sample_pool
from trimtab.cli.demo.conclusion import draw_changes, draw_conclusion, list_proofs
from trimtab.cli.main import EXIT_FAILED
from trimtab.cli.options import takes
from trimtab.cli.print_text import print_text
from trimtab.cli.printable_text import styled
from trimtab.cli.reports.admission import AdmitReport, report_pod, sum_totals
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.format_count import format_count
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.yaml_documents import read_documents
from trimtab.inputs.option import option
from trimtab.policy.cluster_facts import ClusterFacts, from_snapshot
from trimtab.policy.load import load_policies
from trimtab.runtime import clock
from trimtab.runtime.environment import variable_name
from trimtab.runtime.settings import Settings

_TIMEOUT_SECONDS = 30
"""The seconds that the webhook may take to start, and to stop."""


class WebhookDidNotStart(Exception):
    """The webhook did not start; the text is its output."""


class ReviewClient:
    """A client that sends AdmissionReviews over HTTPS and trusts only the authority issued for this run."""

    def __init__(self, url: str, authority: Path) -> None:
        self.url = url
        self.seconds: list[float] = []
        """The duration of each review on a connection that stays open."""
        self._http = urllib3.PoolManager(ca_certs=str(authority), retries=False, timeout=10.0)

    def send_review(self, pod: Pod, namespace: str) -> tuple[Operation, ...]:
        """Returns the webhook's JSON patch for the creation of this pod."""
        group_version = {"group": "", "version": "v1"}
        body = json.dumps(
            {
                "apiVersion": "admission.k8s.io/v1",
                "kind": "AdmissionReview",
                "request": {
                    "uid": str(uuid.uuid4()),
                    "kind": {**group_version, "kind": "Pod"},
                    "resource": {**group_version, "resource": "pods"},
                    "namespace": namespace,
                    "operation": "CREATE",
                    "object": {"apiVersion": "v1", "kind": "Pod", **to_plain_json(pod)},
                },
            }
        ).encode()
        started_at = time.perf_counter()
        http_response = self._http.request(
            "POST", f"{self.url}/mutate?timeout=2s", body=body, headers={"Content-Type": "application/json"}
        )
        self.seconds.append(time.perf_counter() - started_at)
        response = json.loads(http_response.data)["response"]
        if "patch" not in response:
            return ()
        operations: list[Operation] = json.loads(base64.b64decode(response["patch"]))
        return tuple(operations)

    def admit_pod(self, pod: Pod, namespace: str) -> Pod:
        """Returns the pod with the webhook's patch, applied as the API server applies it."""
        patched = jsonpatch.apply_patch(to_plain_json(pod), list(self.send_review(pod, namespace)))
        return msgspec.convert(patched, Pod)


@contextmanager
def run_webhook(folder: Path, policies: Path, cluster: Path) -> Iterator[ReviewClient]:
    """Run the webhook on a free port of this machine, and yield a client of it. Raises WebhookDidNotStart."""
    pair, ready = folder / "certs", folder / "ready.json"
    ready.unlink(missing_ok=True)  # an earlier demo in this folder had another port
    certs.write_folder(pair, certs.issue(["localhost", "127.0.0.1"], now=clock.utc_now()))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TRIMTAB_")}
    settings = {
        "LISTEN": "127.0.0.1:0",
        "CERTS_FOLDER": pair,
        "POLICIES": policies,
        "CLUSTER": cluster,
        "READY_FILE": ready,
        "LOG_FORMAT": "json",
        "SHUTDOWN_DELAY_SECONDS": 0,
        "GRACEFUL_TIMEOUT_SECONDS": 5,
    }
    environ |= {variable_name(Settings.process, name.lower()): str(value) for name, value in settings.items()}
    with (folder / "webhook.log").open("w+", encoding="utf-8") as log:
        command = [sys.executable, "-m", "trimtab", Settings.process]
        process = subprocess.Popen(command, env=environ, stdout=log, stderr=log)  # noqa: S603  Trimtab itself
        try:
            yield ReviewClient(_wait_for_url(process, ready, log.name), pair / "ca.crt")
        finally:
            process.terminate()
            process.wait(timeout=_TIMEOUT_SECONDS)


def _wait_for_url(process: "subprocess.Popen[bytes]", ready: Path, log: str) -> str:
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        if ready.exists():
            return str(json.loads(ready.read_text())["url"])
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise WebhookDidNotStart(Path(log).read_text(encoding="utf-8") or "the webhook printed nothing")


_FILES = ("world.yaml", "shop.yaml", "policies.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """The options of `trimtab demo`."""

    keep: Annotated[
        str | None,
        option(
            "--keep",
            type=click.Path(file_okay=False),
            help="Keep the demo's files in this folder, to try other verbs on them.",
        ),
    ] = None


@click.command("demo")
@takes(DemoOptions)
def verb(options: DemoOptions) -> None:
    """Run the webhook and a compaction on this machine, without a cluster.

    The demo issues certificates, starts the real webhook on a free port, sends it the pods of a small shop as an API
    server does (HTTPS, AdmissionReview v1), and shows the changed pods. Then it plans and simulates the compaction of a
    small pool, shows a dry run and a real compaction of the pool, and says at last what this proved.
    """
    console = output.create_console()
    with tempfile.TemporaryDirectory(prefix="trimtab-demo-") as scratch:
        folder = Path(options.keep or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for name in _FILES:
            (folder / name).write_bytes((resources.files("trimtab.cli.demo") / name).read_bytes())
        try:
            reviews, are_equal = _run_admission(console, folder)
        except WebhookDidNotStart as error:
            print_text(f"The webhook of the demo did not start:\n{error}", err=True)
            sys.exit(EXIT_FAILED)
        (folder / "pool.json").write_bytes(sample_pool.build_pool_list())
        (folder / "usage.csv").write_bytes(sample_pool.build_usage())
    planned_nodes = sample_pool.draw_sample_pool(console)
    outcome = compaction.draw_compaction(console, sample_pool.build_inputs())
    proofs = tuple(list_proofs(reviews=reviews, are_equal=are_equal, planned_nodes=planned_nodes, outcome=outcome))
    if not draw_conclusion(console, proofs):
        sys.exit(EXIT_FAILED)
    if options.keep is not None:
        print_text(f"Next, on the demo's files:\n{_suggest_commands(shlex.quote(options.keep))}")
        return
    console.print(
        styled(
            "Next: [bold]trimtab admit -f your-manifests.yaml[/], or [bold]trimtab plan --cluster live[/]. Both change "
            "nothing."
        ),
        highlight=False,
    )


def _suggest_commands(folder: str) -> str:
    """Returns commands that read the demo's files in this folder and change nothing, one in a line."""
    as_typed = Path(sys.argv[0])
    is_relative = as_typed.name == "trimtab" and not as_typed.is_absolute()
    program, pool = str(as_typed) if is_relative else "trimtab", f"--cluster {folder}/pool.json"
    return "\n".join(
        (
            f"  {program} plan {pool}",
            f"  {program} why node shop-5 {pool}",
            f"  {program} recommend -n shop --usage {folder}/usage.csv {pool}",
            f"  {program} admit -f {folder}/shop.yaml --policies {folder}/policies.yaml "
            f"--cluster {folder}/cluster.yaml",
        )
    )


def _run_admission(console: Console, folder: Path) -> tuple[int, bool]:
    """Returns the number of reviews, and whether all pods are the same with the webhook's answers as offline."""
    cluster_documents, manifests, policy_documents = (
        read_documents(name, (folder / name).read_bytes()) for name in _FILES
    )
    templates = [
        template
        for document in manifests.documents
        for template in templates_of(document)
        if isinstance(template, PodTemplateLocation)
    ]
    facts = from_snapshot(build_snapshot([*cluster_documents.documents, *manifests.documents]).snapshot)
    policies = load_policies([("policies.yaml", (folder / "policies.yaml").read_bytes())]).policies
    snapshot = folder / "cluster.yaml"
    snapshot.write_bytes(b"---\n".join((folder / name).read_bytes() for name in ("world.yaml", "shop.yaml")))
    console.print(
        Text(
            f"1. The webhook sizes pods: {format_count(len(policy_documents.documents), 'policy', 'policies')}, "
            f"{format_count(len(templates), 'workload')}",
            style="bold",
        )
    )
    with run_webhook(folder, folder / "policies.yaml", snapshot) as client:
        previews = [
            preview_admission(
                template.pod,
                template.namespace,
                AdmissionContext(policies=policies, facts=template.with_owners(facts)),
            )
            for template in templates
        ]
        are_equal = [
            _is_same_as_preview(client, template, pod_preview, facts)
            for template, pod_preview in zip(templates, previews, strict=True)
        ]
    pods = [
        report_pod(
            template,
            pod_preview,
            tuple(dict.fromkeys(text for call in pod_preview.calls for text in decision_warnings(call.decision))),
        )
        for template, pod_preview in zip(templates, previews, strict=True)
    ]
    admit_report = AdmitReport(
        policies=[policy.name for policy in policies.all], notes=[], pods=pods, totals=sum_totals(pods)
    )
    draw_changes(console, admit_report)
    median_ms = statistics.median(client.seconds) * 1000
    console.print(
        f"{len(client.seconds)} reviews over TLS by {client.url}, {median_ms:.1f} ms each (median)",
        highlight=False,
    )
    return len(client.seconds), all(are_equal)


def _is_same_as_preview(
    client: ReviewClient, template: PodTemplateLocation, pod_preview: Preview, facts: ClusterFacts
) -> bool:
    """Returns whether the pod is the same with the webhook's answers as in the offline preview."""
    stored = run_admission_chain(
        template.pod,
        template.with_owners(facts),
        template.namespace,
        lambda pod: client.admit_pod(pod, template.namespace),
    )
    return getattr(stored, "pod", stored) == getattr(pod_preview.result, "pod", pod_preview.result)
