"""`trimtab demo`: the main job end to end on this machine, without a cluster."""

import statistics
import sys
import tempfile
from importlib import resources
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from trimtab.admission.answer import told
from trimtab.admission.apiserver.passes import admit
from trimtab.admission.preview import Preview, preview
from trimtab.admission.templates import Template, template
from trimtab.cluster.documents import read
from trimtab.cluster.snapshot import build
from trimtab.command import output
from trimtab.command.admit.draw import draw
from trimtab.command.admit.report import AdmitReport, pod_report, totals
from trimtab.command.demo import pool, steps
from trimtab.command.demo.service import Client, DidNotStart, running
from trimtab.command.main import FAILED
from trimtab.policy.facts import Facts, from_snapshot
from trimtab.policy.load import load_policies

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
            (folder / name).write_bytes((resources.files("trimtab.command.demo") / name).read_bytes())
        try:
            _run(console, folder)
        except DidNotStart as error:
            click.echo(f"The webhook did not start:\n{error}", err=True)
            sys.exit(FAILED)
        (folder / "pool.json").write_bytes(pool.snapshot())
    pool.show(console)
    steps.show(console, pool.asked())
    _onwards(console)


def _run(console: Console, folder: Path) -> None:
    world, shop, rules = (read(name, (folder / name).read_bytes()) for name in _FILES)
    templates = [found for found in map(template, shop.documents) if isinstance(found, Template)]
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


def _agrees(client: Client, found: Template, made: Preview, facts: Facts) -> bool:
    """Is the pod stored with the service's answers the one that the offline decision promises?"""
    stored = admit(found.pod, found.facts(facts), found.namespace, lambda pod: client.admit(pod, found.namespace))
    return getattr(stored, "pod", stored) == getattr(made.result, "pod", made.result)


def _warnings(made: Preview) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for call in made.calls for text in told(call.decision)))


def _served(console: Console, client: Client, agreed: bool) -> None:
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
