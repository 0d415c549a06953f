"""`trimtab admit`: what would become of these pods, and why?"""

import sys
from dataclasses import dataclass, replace

import click

from trimtab.admission.handler import told
from trimtab.admission.pod_templates import PodTemplateLocation, group_of, is_unknown_kind, left_as_written, templates
from trimtab.admission.preview import Preview, preview
from trimtab.cli import live_cluster, output
from trimtab.cli.admit.report import AdmitReport, pod_report, totals
from trimtab.cli.admit.running_pods import running
from trimtab.cli.admit.table import draw, draw_running
from trimtab.cli.main import FOUND, UsageError
from trimtab.cli.manifests import committed
from trimtab.cli.output import progress
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.snapshot import KINDS, build
from trimtab.cluster.yaml_documents import Document
from trimtab.cluster.yaml_documents import read as read_documents
from trimtab.policy.cluster_facts import ClusterFacts, from_snapshot
from trimtab.policy.load import load_policies
from trimtab.policy.pod_context import AdmissionSettings
from trimtab.policy.podpolicy import Policies
from trimtab.policy.vpa_webhook import anywhere

KINDS_OF_FACTS = tuple(kind for kind in KINDS if kind != "Pod")
"""What is read of a live cluster: no decision on a pod looks at other pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Everything that was read, before anything is decided."""

    templates: tuple[PodTemplateLocation, ...]
    policies: Policies
    facts: ClusterFacts
    notes: tuple[str, ...]


@click.command("admit")
@click.option("-f", "--filename", "filenames", multiple=True, metavar="FILE", help="Manifests; - is stdin.")
@click.option("--running", "look_at_running", is_flag=True, help="Look at the pods of --cluster that run already.")
@click.option(
    "--policies",
    "policy_paths",
    multiple=True,
    metavar="PATH",
    help="Policies; default: our recommended set (with --running: the cluster's own, where it has any).",
)
@live_cluster.options
@click.option(
    "--overhead",
    type=click.Choice(["server", "webhook"]),
    default="server",
    show_default=True,
    help="Who writes pod overhead: the API server's RuntimeClass admission, or the webhook.",
)
@click.option("--vpa-webhook/--no-vpa-webhook", default=True, show_default=True, help="Can the VPA's own webhook act?")
@click.option("--explain", is_flag=True, help="Tell all: what was left alone and why, and the server's own steps.")
@click.option("--strict", is_flag=True, help="Exit 1 where a pod is refused, or a warning was given.")
@output.options
def verb(
    filenames: tuple[str, ...],
    look_at_running: bool,
    policy_paths: tuple[str, ...],
    cluster: live_cluster.ClusterOptions,
    overhead: str,
    vpa_webhook: bool,
    explain: bool,
    strict: bool,
    output: str,
    output_file: str | None,
) -> None:
    """What would become of these pods, and why?

    Reads pods, and anything with a pod template (Deployment, Job, …); RuntimeClasses, LimitRanges, quotas, VPAs and
    Namespaces among the files (or in the snapshot) are taken as standing in the cluster. -o yaml prints the manifests
    as they would be: admitting them again changes nothing.

    With --running, instead of manifests: which pods of the cluster came through without what policy says, and why;
    whose overhead is not their RuntimeClass's.
    """
    _asked_well(filenames, look_at_running, cluster)
    if look_at_running:
        _running(policy_paths, cluster, _terms(overhead), vpa_webhook, explain, strict, output, output_file)
        return
    contents = live_cluster.read(filenames)
    asked = _read(contents, policy_paths, cluster, vpa_webhook)
    if explain and live_cluster.LIVE in cluster.paths:
        asked = _with_missing(asked, cluster)
    terms = _terms(overhead)
    previews = [
        preview(t.pod, asked.policies, t.facts(asked.facts), t.namespace, terms)
        for t in progress(asked.templates, "Admitting")
    ]
    if output == "yaml":
        for note in asked.notes:
            click.echo(note, err=True)
        _write(committed(contents, list(zip(asked.templates, previews, strict=True))), output_file)
    else:
        report = _report(asked, previews)
        _emit(output, output_file, report, explain)
    if strict and any(not_well(found) for found in previews):
        sys.exit(FOUND)


def _with_missing(asked: _Asked, cluster: live_cluster.ClusterOptions) -> _Asked:
    """Why is there no recommendation yet? The recommender knows, and publishes only what is known."""
    missing, notes = live_cluster.missing(cluster)
    recommendations = replace(asked.facts.recommendations, missing=missing)
    facts = replace(asked.facts, recommendations=recommendations)
    return replace(asked, facts=facts, notes=(*asked.notes, *notes))


def _terms(overhead: str) -> AdmissionSettings:
    return AdmissionSettings(overhead="webhook" if overhead == "webhook" else "server")


def _asked_well(filenames: tuple[str, ...], look_at_running: bool, cluster: live_cluster.ClusterOptions) -> None:
    """Manifests or running pods, one of them."""
    if look_at_running and filenames:
        raise UsageError([ConfigError(file="command line", expected="--filename or --running", got="both")])
    if look_at_running and not cluster.paths:
        raise UsageError([ConfigError(file="command line", expected="--cluster with --running", got="none")])
    if not look_at_running and not filenames:
        raise UsageError([ConfigError(file="command line", expected="--filename FILE, or --running", got="neither")])


def _running(
    policy_paths: tuple[str, ...], cluster: live_cluster.ClusterOptions, terms: AdmissionSettings, vpa_acts: bool,
    explain: bool,
    strict: bool,
    form: str, output_file: str | None,
) -> None:  # fmt: skip
    report = running(cluster, policy_paths, terms, vpa_acts=vpa_acts)
    title = "trimtab admit --running"
    output.emit(form, output_file, report, lambda console: draw_running(console, report, explain=explain), title)
    if strict and not report.is_well:
        sys.exit(FOUND)


def not_well(found: Preview) -> bool:
    """Refused, or something a warning was given for."""
    return not hasattr(found.result, "pod") or any(told(call.decision) or call.problem for call in found.calls)


def _write(text: str, output_file: str | None) -> None:
    output.write(text, output_file)


def _emit(form: str, output_file: str | None, report: AdmitReport, explain: bool) -> None:
    output.emit(form, output_file, report, lambda console: draw(console, report, explain=explain), "trimtab admit")


def _read(
    contents: list[live_cluster.Content],
    policy_paths: tuple[str, ...],
    cluster: live_cluster.ClusterOptions,
    vpa_acts: bool,
) -> _Asked:
    """Everything at once, so that all mistakes of all files are told together."""
    documents, mistakes, repeated = _documents(contents)
    standing, more, _ = _documents(live_cluster.read_live_objects(cluster, KINDS_OF_FACTS))
    loaded = load_policies(live_cluster.read(policy_paths) if policy_paths else live_cluster.shipped())
    read = [(document, found) for document in documents for found in templates(document)]
    left = [why for document in documents if (why := left_as_written(document)) is not None]
    built = build([*standing, *documents])
    unread = [(document, found) for document, found in read if isinstance(found, ConfigError)]
    mistakes += [*more, *loaded.mistakes, *(found for document, found in unread if document.kind in KINDS)]
    mistakes += [found for found in built.mistakes if found not in mistakes]
    if mistakes:
        raise UsageError(mistakes)
    pods = tuple(found for _, found in read if isinstance(found, PodTemplateLocation))
    if not pods:
        names = ", ".join(name for name, _ in contents)
        got = "; ".join(["none", *left])
        raise UsageError([ConfigError(file=names, expected="a Pod, or something with a pod template", got=got)])
    facts = from_snapshot(built.snapshot, vpa_reach=anywhere(vpa_acts))
    strange = [found for document, found in unread if document.kind not in KINDS]
    notes = (
        *_notes(cluster, facts),
        *(f"Left as it is, for its template is no pod's: {found}" for found in strange),
        *(f"Left as it is: {found}" for found in left),
        *_unknown_kinds(documents),
        *(f"Of a key that stands twice the last one counts: {found}" for found in repeated),
    )
    return _Asked(templates=pods, policies=loaded.policies, facts=facts, notes=notes)


def _unknown_kinds(documents: list[Document]) -> tuple[str, ...]:
    """One note of all kinds of which nobody here knows whether their operators make pods."""
    found = sorted({f"{document.kind} ({group_of(document)})" for document in documents if is_unknown_kind(document)})
    if not found:
        return ()
    return (f"No pod template was found in manifests of these kinds; whether pods are made of them is not known: "
            f"{', '.join(found)}.",)  # fmt: skip


def _documents(contents: list[live_cluster.Content]) -> tuple[list[Document], list[ConfigError], list[ConfigError]]:
    """Documents, mistakes, and keys that stand twice, which kubectl takes, too."""
    documents: list[Document] = []
    mistakes: list[ConfigError] = []
    repeated: list[ConfigError] = []
    for name, content in contents:
        reading = read_documents(name, content, takes_repeated_keys=True)
        documents += reading.documents
        mistakes += reading.mistakes
        repeated += reading.repeated
    return documents, mistakes, repeated


def _notes(cluster: live_cluster.ClusterOptions, facts: ClusterFacts) -> tuple[str, ...]:
    """What the answer rests on."""
    notes = [str(problem) for problem in facts.problems]
    if not cluster.paths:
        notes.insert(0, "No --cluster was given: apart from what the files hold, the cluster is taken to be empty "
                        "(no LimitRange, quota, RuntimeClass, VPA, usage).")  # fmt: skip
    return tuple(notes)


def _report(asked: _Asked, previews: list[Preview]) -> AdmitReport:
    pods = []
    for found, made in zip(asked.templates, previews, strict=True):
        warnings = tuple(dict.fromkeys(text for call in made.calls for text in told(call.decision)))
        pods.append(pod_report(found, made, warnings))
    names = [policy.name for policy in asked.policies.all]
    return AdmitReport(policies=names, notes=list(asked.notes), pods=pods, totals=totals(pods))
