"""The command line of `trimtab admit`: it reads manifests or running pods, and writes what admission would change in
them."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import click

from trimtab.admission.admission_context import AdmissionContext
from trimtab.admission.apiserver.outcome import PodAdmitted
from trimtab.admission.committed_manifest import MAX_COMMITS, preview_commits
from trimtab.admission.handler import decision_warnings
from trimtab.admission.pod_templates import (
    PodTemplateLocation,
    group_of,
    is_unknown_kind,
    read_templates,
    why_not_admitted,
)
from trimtab.admission.preview import Preview, preview_admission
from trimtab.admission.referenced_templates import add_referenced_templates
from trimtab.admission.template_owners import find_counted_owners
from trimtab.admission.total_quota_use import NewPods, list_small_quotas
from trimtab.admission.vpa_sizing import VpaSizing, size_by_vpa
from trimtab.cli.main import EXIT_FOUND
from trimtab.cli.options import takes
from trimtab.cli.output import show_progress, write_text
from trimtab.cli.print_text import print_text
from trimtab.cli.reporting.emit import ReportOutput, write_report
from trimtab.cli.reporting.notes import group_notes
from trimtab.cli.reports.admission import AdmitReport, report_pod, sum_totals
from trimtab.cli.reports.admission_screen import view_admission_on_screen
from trimtab.cli.reports.admission_table import view_admission
from trimtab.cli.selection import SelectionOptions
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.kinds import GroupKind, kind_name
from trimtab.cluster.overhead_writer import OverheadWriter
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.snapshot import SHAPES_BY_KIND, build_snapshot
from trimtab.cluster.yaml_documents import Document, read_documents
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.flags import DETAILS, FILENAME, OVERHEAD, POLICIES, STRICT
from trimtab.inputs.live_cluster import ClusterOptions
from trimtab.inputs.manifests import Decided, rewrite_manifests
from trimtab.inputs.option import option
from trimtab.policy.cluster_facts import ClusterFacts, from_snapshot
from trimtab.policy.load import load_policies
from trimtab.policy.pod_context import AdmissionSettings
from trimtab.policy.podpolicy import Policies
from trimtab.policy.vpa_webhook import reach_everywhere_if

KINDS_OF_FACTS = tuple(kind for kind in SHAPES_BY_KIND if kind != "Pod")
"""The kinds that are read from a live cluster for decisions. Pods are not among them: no decision depends on other
pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _AdmitInputs:
    """The policies, objects and settings that decisions are made from."""

    templates: tuple[PodTemplateLocation, ...]
    policies: Policies
    facts: ClusterFacts
    notes: tuple[str, ...]
    existing: frozenset[OwnerKey]
    """The objects of the cluster, if it has quotas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitOptions:
    """The options of `trimtab admit`."""

    filenames: Annotated[tuple[str, ...], FILENAME] = ()
    is_running: Annotated[
        bool, option("--running", help="Check the running pods of --cluster instead of manifests.")
    ] = False
    policy_paths: Annotated[
        tuple[str, ...],
        POLICIES.with_help("Policies. Default: the recommended set; with --running, the cluster's own if it has any."),
    ] = ()
    cluster: ClusterOptions
    selection: SelectionOptions
    overhead: Annotated[
        OverheadWriter,
        OVERHEAD.with_help("The component that writes pod overhead: the API server or the webhook."),
    ] = "server"
    vpa_acts: Annotated[
        bool, option("--vpa-webhook/--no-vpa-webhook", help="Whether the VPA's own webhook can act.")
    ] = True
    details: Annotated[
        bool, DETAILS.with_help("Also show what stays unchanged and why, and the API server's own steps.")
    ] = False
    strict: Annotated[bool, STRICT.with_help("Exit with 1 if a pod is refused or there is a warning.")] = False
    output: ReportOutput

    @property
    def settings(self) -> AdmissionSettings:
        """The admission settings that the webhook runs with."""
        return AdmissionSettings(overhead=self.overhead)


@click.command("admit")
@takes(AdmitOptions)
def verb(options: AdmitOptions) -> None:
    """Show how policies would change these pods, and why.

    Reads pods, and objects with a pod template (Deployment, Job, …). RuntimeClasses, LimitRanges, quotas, VPAs and
    Namespaces in the files (or in the snapshot) count as objects of the cluster. -o yaml prints the manifests with the
    changes: admitting them again changes nothing.

    If a VPA in any mode but Off has a recommendation for the workload, the report also says what the VPA's own webhook
    sets in the same request, and whether a quota or a ratio of a LimitRange refuses the pod with it. The table and the
    totals do not contain it.

    With --running, the command checks the pods of the cluster instead of manifests: which of them lack a change of a
    policy, and why, and which have another overhead than their RuntimeClass.
    """
    _check_options(options)
    if options.is_running:
        # Imported here: manifests need none of it.
        from trimtab.cli.reports.running_pods import audit_running_pods
        from trimtab.cli.reports.running_table import view_running

        report = audit_running_pods(
            options.cluster,
            options.policy_paths,
            options.settings,
            vpa_acts=options.vpa_acts,
            selection=options.selection.parse(),
        )
        is_screen = options.output.form == "table" and not options.details
        write_report(options.output, report, view_running(explain=options.details, is_screen=is_screen))
        if options.strict and not report.is_well:
            sys.exit(EXIT_FOUND)
        return
    contents = live_cluster.read_paths(options.filenames)
    inputs = _read_inputs(contents, options)
    if options.details and live_cluster.LIVE in options.cluster.paths:
        inputs = _add_missing_recommendations(inputs, options.cluster)
    settings = options.settings

    def preview(template: PodTemplateLocation) -> Preview:
        facts = template.with_owners(inputs.facts)
        context = AdmissionContext(policies=inputs.policies, facts=facts, settings=settings)
        return preview_admission(template.pod, template.namespace, context)

    previews = [preview(template) for template in show_progress(inputs.templates, "Admitting")]
    counted_owners = find_counted_owners(inputs.templates, inputs.facts)
    new_pods = _new_pods(inputs, previews, counted_owners)
    inputs = replace(inputs, notes=(*inputs.notes, *list_small_quotas(new_pods, inputs.facts)))
    sizings = [_size(template, one, inputs.facts) for template, one in zip(inputs.templates, previews, strict=True)]
    if options.output.form == "yaml":
        commits = [
            (template, preview_commits(template, first, preview))
            for template, first in zip(inputs.templates, previews, strict=True)
            if not template.document.is_derived
        ]
        for note in group_notes(
            (*inputs.notes, *_note_later_changes(commits), *_note_unwritten(inputs.templates, previews))
        ):
            print_text(note, err=True)
        write_text(rewrite_manifests(contents, commits), options.output.file)
    else:
        admit_report = _build_report(inputs, previews, counted_owners, sizings)
        is_screen = options.output.form == "table" and not options.details
        view = view_admission_on_screen(admit_report) if is_screen else view_admission(explain=options.details)
        write_report(options.output, admit_report, view)
    is_refused_by_size = any(sizing is not None and sizing.refused is not None for sizing in sizings)
    if options.strict and (is_refused_by_size or any(has_problem(pod_preview) for pod_preview in previews)):
        sys.exit(EXIT_FOUND)


def _size(template: PodTemplateLocation, preview: Preview, facts: ClusterFacts) -> VpaSizing | None:
    """Returns what the VPA's webhook sets in the pod; None for a pod that is refused anyway."""
    if not isinstance(preview.result, PodAdmitted):
        return None
    return size_by_vpa(preview.result.pod, template.with_owners(facts), template.namespace)


def _new_pods(
    inputs: _AdmitInputs, previews: Iterable[Preview], counted_owners: Iterable[OwnerKey | None]
) -> Iterator[NewPods]:
    """Yields the admitted pods of objects that do not exist in the cluster yet. A quota counts those of the others."""
    for template, preview, counted_with in zip(inputs.templates, previews, counted_owners, strict=True):
        exists = template.key in inputs.existing or template.document.value_at(("metadata", "uid")) is not None
        if isinstance(preview.result, PodAdmitted) and counted_with is None and not exists:
            yield NewPods(namespace=template.namespace, pod=preview.result.pod, count=template.replicas)


def _note_later_changes(decided: Sequence[Decided]) -> Iterator[str]:
    """Yields a note per pod that policies change again once the first changes are committed."""
    for template, commits in decided:
        changes = [change for commit in commits[1:] for change in commit.all_changes]
        if not changes:
            continue
        names = ", ".join(sorted({change.policy for change in changes}))
        fields = ", ".join(sorted({change.field for change in changes}))
        if len(commits) < MAX_COMMITS:
            yield (
                f"{template.document.entry_name}: after you commit the first changes, policies also change "
                f"{fields} (by {names}). The output contains these changes too."
            )
        else:
            yield (
                f"{template.document.entry_name}: the policies {names} contradict each other, and change "
                f"{fields} each time that the manifest is admitted. Change `match` in one of these policies."
            )


def _note_unwritten(templates: Iterable[PodTemplateLocation], previews: Iterable[Preview]) -> Iterator[str]:
    """Yields a note per pod that policies change, but whose template is that of another object."""
    for template, preview in zip(templates, previews, strict=True):
        if template.document.is_derived and preview.all_changes:
            yield (
                f"{template.document.entry_name}: its pods have the template of another object. The output contains "
                "the changes to the pods of that object, but not the changes to the pods of this one."
            )


def _add_missing_recommendations(inputs: _AdmitInputs, cluster: live_cluster.ClusterOptions) -> _AdmitInputs:
    """Returns the inputs with the recommender's reasons for missing recommendations, which it does not publish."""
    missing, notes = live_cluster.read_missing_recommendations(cluster)
    recommendations = replace(inputs.facts.recommendations, missing=missing)
    facts = replace(inputs.facts, recommendations=recommendations)
    return replace(inputs, facts=facts, notes=(*inputs.notes, *notes))


def _check_options(options: AdmitOptions) -> None:
    """Raise UsageError unless the options name either manifests or running pods."""
    if options.is_running and options.filenames:
        raise UsageError([ConfigError(file="command line", expected="--filename or --running", got="both")])
    if options.is_running and not options.cluster.paths:
        raise UsageError([ConfigError(file="command line", expected="--cluster together with --running", got="none")])
    if not options.is_running and not options.filenames:
        raise UsageError([ConfigError(file="command line", expected="--filename FILE, or --running", got="neither")])


def has_problem(pod_preview: Preview) -> bool:
    """Returns whether the pod is refused or has a warning, or an error occurred in Trimtab."""
    return not hasattr(pod_preview.result, "pod") or any(
        decision_warnings(call.decision) or call.problem for call in pod_preview.calls
    )


def _read_inputs(contents: list[live_cluster.Content], options: AdmitOptions) -> _AdmitInputs:
    """Read all files. Raises one UsageError with the mistakes of all files."""
    policy_paths, cluster, selection = options.policy_paths, options.cluster, options.selection.parse()
    documents, mistakes, repeated = _parse_documents(contents)
    documents = add_referenced_templates(documents)
    cluster_documents, more, _ = _parse_documents(live_cluster.read_live_objects(cluster, KINDS_OF_FACTS))
    loaded = load_policies(live_cluster.read_paths(policy_paths) if policy_paths else live_cluster.shipped_policies())
    located = [(document, template) for document in documents for template in read_templates(document)]
    snapshot_build = build_snapshot([*cluster_documents, *documents])
    unread = [(document, template) for document, template in located if isinstance(template, ConfigError)]
    mistakes += [
        *more,
        *loaded.mistakes,
        *(template for document, template in unread if document.kind in SHAPES_BY_KIND),
    ]
    mistakes += [template for template in snapshot_build.mistakes if template not in mistakes]
    if mistakes:
        raise UsageError(mistakes)
    pods = tuple(template for _, template in located if isinstance(template, PodTemplateLocation))
    not_pods = [template for document, template in unread if document.kind not in SHAPES_BY_KIND]
    with_templates = {id(document) for document, _ in located}
    read = {id(template.document) for template in pods}
    causes = [(id(document), cause) for document in documents if (cause := why_not_admitted(document)) is not None]
    unchanged = [cause for document, cause in causes if document not in with_templates]
    incomplete = [cause for document, cause in causes if document in read]
    if not pods:
        names = ", ".join(name for name, _ in contents)
        unknown = _unknown_kinds(documents)
        ignored = [*map(str, not_pods), *unchanged]
        if unknown:
            ignored.append(
                f"{unknown} has no pod template, and Trimtab does not know whether such an object creates pods"
            )
        got = "; ".join(["none", *ignored])
        raise UsageError([ConfigError(file=names, expected="a Pod, or an object with a pod template", got=got)])
    selection.check_namespaces(template.namespace for template in pods)
    pods = tuple(
        template
        for template in pods
        if selection.includes(template.namespace, value_or(template.pod.metadata.labels, {}))
    )
    if not pods:
        expected = "at least one pod in the files that --namespace and --selector select"
        raise UsageError([ConfigError(file="command line", expected=expected, got="none")])
    facts = from_snapshot(snapshot_build.snapshot, vpa_reach=reach_everywhere_if(options.vpa_acts))
    notes = (
        *_list_notes(cluster, facts),
        *(
            f"This template stays unchanged, because it is not a complete pod template: {template}"
            for template in not_pods
        ),
        *(f"This object stays unchanged: {cause}" for cause in unchanged),
        *incomplete,
        *_note_unknown_kinds(documents),
        *(f"A key occurs twice, and only its last value is used: {key}" for key in repeated),
    )
    existing = frozenset(map(_key_of, cluster_documents)) if facts.quotas else frozenset()
    return _AdmitInputs(templates=pods, policies=loaded.policies, facts=facts, notes=notes, existing=existing)


def _key_of(document: Document) -> OwnerKey:
    namespace, name = (document.value_at(("metadata", key)) for key in ("namespace", "name"))
    return OwnerKey(namespace or "default", document.kind or GroupKind(""), str(name))


def _note_unknown_kinds(documents: list[Document]) -> tuple[str, ...]:
    """Returns one note with all custom kinds without a known pod template; their operators may create pods."""
    kinds = _unknown_kinds(documents)
    if not kinds:
        return ()
    return (f"No pod template was found in manifests of these kinds; whether they create pods is not known: {kinds}.",)


def _unknown_kinds(documents: list[Document]) -> str:
    """Returns the names of all custom kinds for which it is not known whether their operators create pods."""
    return ", ".join(
        sorted(
            {
                f"{kind_name(document.kind)} ({group_of(document)})"
                for document in documents
                if document.kind is not None and is_unknown_kind(document)
            }
        )
    )


def _parse_documents(
    contents: list[live_cluster.Content],
) -> tuple[list[Document], list[ConfigError], list[ConfigError]]:
    """Returns the documents, the mistakes in them, and the repeated keys, which kubectl tolerates."""
    documents: list[Document] = []
    mistakes: list[ConfigError] = []
    repeated: list[ConfigError] = []
    for name, content in contents:
        reading = read_documents(name, content, takes_repeated_keys=True)
        documents += reading.documents
        mistakes += reading.mistakes
        repeated += reading.repeated
    return documents, mistakes, repeated


def _list_notes(cluster: live_cluster.ClusterOptions, facts: ClusterFacts) -> tuple[str, ...]:
    """Returns what could not be read from the cluster, and if --cluster is missing, that an empty cluster is
    assumed."""
    notes = [str(problem) for problem in facts.problems]
    if not cluster.paths:
        notes.insert(
            0,
            "Without --cluster, Trimtab knows only the objects in the files, and assumes that the rest of the "
            "cluster is empty (no LimitRange, quota, RuntimeClass, VPA or usage).",
        )
    return tuple(notes)


def _build_report(
    inputs: _AdmitInputs,
    previews: list[Preview],
    counted_owners: Sequence[OwnerKey | None],
    sizings: Sequence[VpaSizing | None],
) -> AdmitReport:
    pods = []
    rows = zip(inputs.templates, previews, counted_owners, sizings, strict=True)
    for template, pod_preview, counted_with, sizing in rows:
        warnings = tuple(dict.fromkeys(text for call in pod_preview.calls for text in decision_warnings(call.decision)))
        pods.append(report_pod(template, pod_preview, warnings, counted_with, sizing))
    names = [policy.name for policy in inputs.policies.all]
    return AdmitReport(policies=names, notes=list(inputs.notes), pods=pods, totals=sum_totals(pods))
