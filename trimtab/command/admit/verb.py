"""`trimtab admit`: what would become of these pods, and why?"""

import sys
from dataclasses import dataclass, replace

import click

from trimtab.admission.answer import told
from trimtab.admission.preview import Preview, preview
from trimtab.admission.rewrite import rewrite
from trimtab.admission.templates import Template, template
from trimtab.cluster.documents import Document
from trimtab.cluster.documents import read as read_documents
from trimtab.cluster.mistake import Mistake
from trimtab.cluster.snapshot import KINDS, build, kind_of
from trimtab.command import files, kept, live, output
from trimtab.command.admit.draw import draw
from trimtab.command.admit.draw_running import draw_running
from trimtab.command.admit.report import AdmitReport, pod_report, totals
from trimtab.command.admit.running import running
from trimtab.command.main import FOUND, Wrong
from trimtab.command.manifests import Manifests
from trimtab.command.progress import progress
from trimtab.policy.document import Policies
from trimtab.policy.facts import Facts, from_snapshot
from trimtab.policy.load import load_policies
from trimtab.policy.subject import Terms

KINDS_OF_FACTS = tuple(kind for kind in KINDS if kind != "Pod")
"""What is read of a live cluster: no decision on a pod looks at other pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Everything that was read, before anything is decided."""

    templates: tuple[Template, ...]
    policies: Policies
    facts: Facts
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
@live.options
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
    cluster: live.Asked,
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
    contents = files.read(filenames)
    asked = _read(contents, policy_paths, cluster, vpa_webhook)
    if explain and live.LIVE in cluster.paths:
        asked = _with_missing(asked, cluster)
    terms = _terms(overhead)
    previews = [
        preview(t.pod, asked.policies, t.facts(asked.facts), t.namespace, terms)
        for t in progress(asked.templates, "Admitting")
    ]
    if output == "yaml":
        _write(_manifests(contents, asked.templates, previews), output_file)
    else:
        report = _report(asked, previews)
        _emit(output, output_file, report, explain)
    if strict and any(not_well(found) for found in previews):
        sys.exit(FOUND)


def _with_missing(asked: _Asked, cluster: live.Asked) -> _Asked:
    """Why is there no recommendation yet? The recommender knows, and publishes only what is known."""
    missing, notes = kept.missing(cluster)
    recommendations = replace(asked.facts.recommendations, missing=missing)
    facts = replace(asked.facts, recommendations=recommendations)
    return replace(asked, facts=facts, notes=(*asked.notes, *notes))


def _terms(overhead: str) -> Terms:
    return Terms(overhead="webhook" if overhead == "webhook" else "server")


def _asked_well(filenames: tuple[str, ...], look_at_running: bool, cluster: live.Asked) -> None:
    """Manifests or running pods, one of them."""
    if look_at_running and filenames:
        raise Wrong([Mistake(file="command line", expected="--filename or --running", came="both")])
    if look_at_running and not cluster.paths:
        raise Wrong([Mistake(file="command line", expected="--cluster with --running", came="none")])
    if not look_at_running and not filenames:
        raise Wrong([Mistake(file="command line", expected="--filename FILE, or --running", came="neither")])


def _running(
    policy_paths: tuple[str, ...], cluster: live.Asked, terms: Terms, vpa_acts: bool, explain: bool, strict: bool,
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


def _read(contents: list[files.Content], policy_paths: tuple[str, ...], cluster: live.Asked, vpa_acts: bool) -> _Asked:
    """Everything at once, so that all mistakes of all files are told together."""
    documents, mistakes = _documents(contents)
    standing, more = _documents(live.read(cluster, KINDS_OF_FACTS))
    loaded = load_policies(files.read(policy_paths) if policy_paths else files.shipped())
    templates = [template(document) for document in documents]
    built = build([*standing, *documents])
    unread = [(d, found) for d, found in zip(documents, templates, strict=True) if isinstance(found, Mistake)]
    mistakes += [*more, *loaded.mistakes, *(found for document, found in unread if kind_of(document.value) in KINDS)]
    mistakes += [found for found in built.mistakes if found not in mistakes]
    if mistakes:
        raise Wrong(mistakes)
    pods = tuple(found for found in templates if isinstance(found, Template))
    if not pods:
        names = ", ".join(name for name, _ in contents)
        raise Wrong([Mistake(file=names, expected="a Pod, or something with a pod template", came="none")])
    facts = from_snapshot(built.snapshot, vpa_acts=vpa_acts)
    strange = [found for document, found in unread if kind_of(document.value) not in KINDS]
    notes = (*_notes(cluster, facts), *(f"Left as it is, for its template is no pod's: {f}" for f in strange))
    return _Asked(templates=pods, policies=loaded.policies, facts=facts, notes=notes)


def _documents(contents: list[files.Content]) -> tuple[list[Document], list[Mistake]]:
    documents: list[Document] = []
    mistakes: list[Mistake] = []
    for name, content in contents:
        reading = read_documents(name, content)
        documents += reading.documents
        mistakes += reading.mistakes
    return documents, mistakes


def _notes(cluster: live.Asked, facts: Facts) -> tuple[str, ...]:
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


def _manifests(contents: list[files.Content], templates: tuple[Template, ...], previews: list[Preview]) -> str:
    decided = {(t.document.file, t.document.index): (t, p) for t, p in zip(templates, previews, strict=True)}
    texts = []
    for content in contents:
        manifests = Manifests(content)
        for index in range(len(manifests.objects)):
            found, made = decided.get((content[0], index), (None, None))
            if found and made and any(call.operations for call in made.calls):
                rewrite(manifests.own(index), found.path, made)
        texts.append(manifests.text())
    return "---\n".join(texts)
