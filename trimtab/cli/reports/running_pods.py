"""The report of `trimtab admit --running`: the running pods that differ from what policies would set, with the
cause."""

import sys
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import msgspec

from trimtab.admission.audit.causes import UNREGISTERED_UNKNOWN, ChangeTimes
from trimtab.admission.audit.drift import AuditInputs, Auditor
from trimtab.admission.audit.findings import AuditFinding, Findings, build_findings
from trimtab.admission.audit.original_pod import AuditedPodReader
from trimtab.cli.output import API_VERSION, ReasonReport, ReportPart, report_reason
from trimtab.cli.reports.admission import ChangeReport, report_change
from trimtab.cli.selection import ObjectSelection
from trimtab.cluster.api.admissionregistration import is_trimtab_configuration
from trimtab.cluster.api.meta import Dated, value_or
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.reason import NotYet
from trimtab.cluster.snapshot import SHAPES_BY_KIND, build_snapshot
from trimtab.cluster.timestamps import parse_timestamp
from trimtab.cluster.yaml_documents import Document, read_documents
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import UsageError
from trimtab.policy.cluster_facts import ClusterFacts, from_snapshot
from trimtab.policy.load import load_document, load_policies
from trimtab.policy.match import match_dependencies
from trimtab.policy.pod_context import AdmissionSettings
from trimtab.policy.podpolicy import Policies
from trimtab.policy.policy_kind import KIND
from trimtab.policy.vpa_webhook import reach_everywhere_if
from trimtab.runtime.settings import Settings

CONFIGURATION = "MutatingWebhookConfiguration"
AUDITED_KINDS = (*SHAPES_BY_KIND, KIND, CONFIGURATION)
"""The kinds that are read from a live cluster for the audit of running pods."""


class RunningFindingReport(ReportPart, frozen=True, kw_only=True):
    """The running pods of one owner that differ from the policies in the same way, for one cause."""

    what: str
    """The kind of finding.

    * `unpatched`: the pods lack a change of a policy.
    * `overhead`: the pods have another overhead than their RuntimeClass.
    * `refused`: the pods would be denied if they were created now.
    * `watching`: the policy is in mode `warn` or `audit`.
    * `left-out`: the policy matches the pods but does not change them, for example because of its rollout or an
      opt-out.
    * `withheld`: the webhook takes the change back, because no node or no quota has room for the changed pod."""
    namespace: str
    """The namespace of the pods."""
    owner: str
    """Kind and name of the topmost known owner of the pods. If a pod has no owner, kind and name of the pod."""
    policy: str
    """The policy that the pods differ from; empty if the difference comes from a RuntimeClass."""
    reason: ReasonReport
    """Why the pods differ from the policies."""
    pods: int
    """The number of the pods."""
    names: list[str]
    """The names of the pods."""
    changes: list[ChangeReport]
    """The changes that policies would make."""


class TallyReport(ReportPart, frozen=True, kw_only=True):
    """The numbers of pods that one policy matches, changes and so on, as in the policy's status."""

    policy: str
    """The name of the policy."""
    mode: str
    """The mode of the policy: apply, warn or audit."""
    matched: int
    """The number of pods that the policy's `match` and its rollout select."""
    changed: int
    """The number of pods that the policy changed when they were created, by their annotation."""
    unpatched: int
    """The number of pods that the policy would change and has not changed."""
    would: int
    """The number of pods that the policy would change if its mode were not warn or audit."""
    skipped: int
    """The number of pods that `match` selects and that are left out: opted out, not in the rollout, or paused."""
    overruled: int
    """The number of pods for which a policy of higher priority decided a field differently."""
    error: str
    """The error of an action that failed; empty if none did."""


class OverheadReport(ReportPart, frozen=True, kw_only=True):
    """Which component writes pod overhead (the API server or the webhook), as found on running pods."""

    filled_by: str | None
    """`server` if the API server writes pod overhead, `webhook` if the API server does not; null if no running pod
    shows it."""
    shown_by: str
    """The pod that shows which component writes the overhead; empty if no running pod shows it."""
    wrong: ReasonReport | None
    """The reason why Trimtab's overhead setting is wrong; null if it is right."""


class RunningReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab admit --running`. Published as deploy/schemas/running-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab admit --cluster live --running"
    api_version: str = API_VERSION
    kind: str = "RunningReport"
    policies: list[TallyReport]
    """What each policy did to the running pods, in numbers."""
    notes: list[str]
    """The assumptions under which the report was made, one sentence each."""
    pods: int
    """The number of running pods that were compared."""
    findings: list[RunningFindingReport]
    """The differences between running pods and policies."""
    overhead: OverheadReport
    """Which component writes the overhead of pods, and whether the setting says so."""

    @property
    def is_well(self) -> bool:
        """Whether there is no problem: the overhead setting is right, and no pod is unpatched, is refused, or has
        another overhead than its RuntimeClass."""
        problems = ("unpatched", "overhead", "refused")
        return self.overhead.wrong is None and not any(finding.what in problems for finding in self.findings)


def audit_running_pods(
    cluster_options: live_cluster.ClusterOptions,
    policy_paths: Iterable[str],
    settings: AdmissionSettings,
    *,
    vpa_acts: bool,
    selection: ObjectSelection | None = None,
) -> RunningReport:
    """Read the cluster, and compare every selected running pod with what policies would set."""
    namespaces: set[str] = set()

    def includes(pod: Pod) -> bool:
        namespaces.add(pod.metadata.namespace)
        return selection is None or selection.includes(pod.metadata.namespace, value_or(pod.metadata.labels, {}))

    report = audit_contents(
        live_cluster.read_live_objects(cluster_options, AUDITED_KINDS),
        policy_paths,
        settings,
        vpa_acts=vpa_acts,
        is_live=live_cluster.LIVE in cluster_options.paths,
        keeps=includes,
    )
    if selection is not None:
        selection.check_namespaces(namespaces)
    return report


def audit_contents(
    contents: list[live_cluster.Content],
    policy_paths: Iterable[str],
    settings: AdmissionSettings,
    *,
    vpa_acts: bool,
    is_live: bool,
    keeps: Callable[[Pod], bool],
) -> RunningReport:
    """Compare the running pods that `keeps` selects with what policies would set.

    is_live: every kind was listed from a cluster, so an object that is not among the contents does not exist.
    """
    documents, mistakes = parse_documents(contents)
    snapshot_build = build_snapshot(documents)
    policies, notes, policy_mistakes = choose_policies(tuple(policy_paths), documents)
    mistakes += [*snapshot_build.mistakes, *policy_mistakes]
    if mistakes:
        raise UsageError(mistakes)
    facts = from_snapshot(
        snapshot_build.snapshot, vpa_reach=reach_everywhere_if(vpa_acts), own_namespace=settings.own_namespace
    )
    change_times, change_notes = _read_change_times(documents, Settings().configuration_name, all_read=is_live)
    audit_inputs = AuditInputs(policies=policies, facts=facts, terms=settings)
    pods = [pod for pod in snapshot_build.snapshot.objects_of(Pod) if keeps(pod)]
    # Without a limit: the report lists every pod.
    audit = Auditor(most=sys.maxsize).audit_pods(
        map(AuditedPodReader(match_dependencies(policies).annotations), pods), audit_inputs
    )
    return _build_report(
        build_findings(audit, audit_inputs, change_times),
        audit_inputs,
        audit.pod_count,
        [*notes, *change_notes, *map(str, facts.problems)],
    )


def parse_documents(contents: list[live_cluster.Content]) -> tuple[list[Document], list[ConfigError]]:
    """Returns the documents of all contents, and the mistakes in their YAML or JSON."""
    readings = [read_documents(name, content) for name, content in contents]
    return [document for reading in readings for document in reading.documents], [
        mistake for reading in readings for mistake in reading.mistakes
    ]


def choose_policies(paths: tuple[str, ...], documents: list[Document]) -> tuple[Policies, list[str], list[ConfigError]]:
    """Returns the policies to compare with, with notes and mistakes: those of --policies, else of the cluster, else the
    recommended set.

    An invalid policy in the cluster is ignored, and a note names it.
    """
    own = [document for document in documents if document.kind == KIND]
    if paths or not own:
        loaded = load_policies(live_cluster.read_paths(paths) if paths else live_cluster.shipped_policies())
        notes = (
            []
            if paths
            else ["The cluster has no PodPolicies, so the pods are compared with Trimtab's recommended policies."]
        )
        return loaded.policies, notes, list(loaded.mistakes)
    readings = [load_document(document) for document in own]
    notes = [f"An invalid policy is ignored: {mistake}" for _, mistakes in readings for mistake in mistakes]
    return Policies.from_policies(*(policy for policy, _ in readings if policy is not None)), notes, []


def _read_change_times(
    documents: list[Document], configuration: str, *, all_read: bool
) -> tuple[ChangeTimes, list[str]]:
    """Returns when policies, RuntimeClasses and the webhook configuration last changed, with notes on what is not
    known.

    The times are read from the objects' managed fields. kubectl prints managed fields only with --show-managed-fields;
    without them, the creation time of the object is used.
    """
    policies, classes, webhook = {}, {}, None
    are_configurations_read = all_read or any(document.kind == CONFIGURATION for document in documents)
    for document in documents:
        if document.kind not in ("PodPolicy", "RuntimeClass", CONFIGURATION):
            continue
        metadata = _decode_metadata(document.value)
        match document.kind:
            case "PodPolicy":
                policies[metadata.name] = parse_timestamp(metadata.last_written_at("spec"))
            case "RuntimeClass":
                classes[metadata.name] = parse_timestamp(metadata.last_written_at("overhead", "scheduling"))
            case "MutatingWebhookConfiguration" if is_trimtab_configuration(metadata, configuration):
                webhook = parse_timestamp(metadata.creation_timestamp)
    notes = (
        []
        if are_configurations_read
        else ["No webhook configuration was read, so Trimtab does not know since when its webhook is registered."]
    )
    change_times = ChangeTimes(
        policies={name: at for name, at in policies.items() if at is not None},
        classes={name: at for name, at in classes.items() if at is not None},
        webhook=webhook if are_configurations_read else UNREGISTERED_UNKNOWN,
    )
    return change_times, notes


def _decode_metadata(value: Any) -> Dated:
    try:
        return msgspec.convert(value.get("metadata", {}), Dated)
    except (msgspec.ValidationError, AttributeError):
        return Dated()


def _build_report(audit_findings: Findings, audit_inputs: AuditInputs, pods: int, notes: list[str]) -> RunningReport:
    modes = {policy.name: policy.spec.mode for policy in audit_inputs.policies.all}
    findings_by_kind = (
        ("unpatched", audit_findings.unpatched),
        ("overhead", audit_findings.overhead),
        ("refused", audit_findings.refused),
        ("watching", audit_findings.watching),
        ("left-out", audit_findings.left_out),
        ("withheld", audit_findings.withheld),
    )
    finding_reports = [
        _report_finding(what, finding, audit_inputs.facts) for what, group in findings_by_kind for finding in group
    ]
    return RunningReport(
        policies=[
            TallyReport(
                policy=name,
                mode=modes[name],
                matched=tally.matched,
                changed=tally.changed,
                unpatched=tally.unpatched,
                would=tally.would,
                skipped=tally.skipped,
                overruled=tally.overruled,
                error=tally.failure,
            )
            for name, tally in audit_findings.tallies.items()
        ],
        notes=notes,
        pods=pods,
        findings=_merge_findings(finding_reports),
        overhead=_report_overhead(audit_findings),
    )


def _report_finding(what: str, finding: AuditFinding, facts: ClusterFacts) -> RunningFindingReport:
    names = sorted(pod.name for pod in finding.pods)
    owners = [owner for owner in finding.owners if owner in facts.owners] or finding.owners[:1]
    return RunningFindingReport(
        what=what,
        namespace=finding.alike.namespace,
        owner=str(owners[-1]) if owners else f"Pod/{names[0]}",
        policy=finding.policy,
        reason=report_reason(finding.reason),
        pods=len(names),
        names=names,
        changes=[report_change(change) for change in finding.changes],
    )


def _merge_findings(findings: list[RunningFindingReport]) -> list[RunningFindingReport]:
    """Returns the findings, merged if they have the same owner, cause and changes: the pods of a StatefulSet differ
    only in their names."""
    merged: dict[tuple[object, ...], RunningFindingReport] = {}
    for finding in findings:
        key = (
            finding.what,
            finding.namespace,
            finding.owner,
            finding.policy,
            finding.reason.code,
            msgspec.json.encode(finding.changes),
        )
        earlier = merged.get(key)
        names = sorted([*(earlier.names if earlier else ()), *finding.names])
        merged[key] = msgspec.structs.replace(earlier or finding, names=names, pods=len(names))
    return list(merged.values())


def _report_overhead(audit_findings: Findings) -> OverheadReport:
    wrong = report_reason(audit_findings.setting) if audit_findings.setting is not None else None
    if isinstance(audit_findings.filled_by, NotYet):
        return OverheadReport(filled_by=None, shown_by="", wrong=wrong)
    shown_by = f"{audit_findings.filled_by.namespace}/{audit_findings.filled_by.pod}"
    return OverheadReport(filled_by=audit_findings.filled_by.by, shown_by=shown_by, wrong=wrong)
