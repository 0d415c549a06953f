"""`trimtab admit --running`: which pods that run already are not as policy says, and why?"""

import sys
from collections.abc import Iterable
from typing import Any

import msgspec

from trimtab.admission.audit.causes import UNREGISTERED_UNKNOWN, ChangeTimes
from trimtab.admission.audit.drift import AuditInputs, Auditor
from trimtab.admission.audit.findings import AuditFinding, Findings, PolicyTally, findings
from trimtab.admission.audit.original_pod import AuditedPodReader
from trimtab.cli import live_cluster
from trimtab.cli.admit.report import ChangeReport, change_report
from trimtab.cli.main import UsageError
from trimtab.cli.output import API_VERSION, ReasonReport, ReportPart, why
from trimtab.cluster.api.admissionregistration import is_ours
from trimtab.cluster.api.meta import Dated
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.reason import NotYet
from trimtab.cluster.snapshot import KINDS, build
from trimtab.cluster.timestamps import seconds
from trimtab.cluster.yaml_documents import Document
from trimtab.cluster.yaml_documents import read as read_documents
from trimtab.policy.cluster_facts import ClusterFacts, from_snapshot
from trimtab.policy.load import load_document, load_policies
from trimtab.policy.match import match_asks
from trimtab.policy.pod_context import AdmissionSettings
from trimtab.policy.podpolicy import KIND, Policies
from trimtab.policy.vpa_webhook import anywhere
from trimtab.runtime.settings import Settings

CONFIGURATION = "MutatingWebhookConfiguration"
WANTED = (*KINDS, KIND, CONFIGURATION)
"""What is read of a live cluster."""


class RunningFindingReport(ReportPart, frozen=True, kw_only=True):
    what: str
    """`unpatched`, `overhead`, `refused` (would be denied if it were created now), `watching` (the policy is in mode
    `warn` or `audit`), `left-out`."""
    namespace: str
    owner: str
    """Kind and name of the topmost owner that is known; of a bare pod its own."""
    policy: str
    """Empty where it is a RuntimeClass that says so."""
    reason: ReasonReport
    pods: int
    names: list[str]
    changes: list[ChangeReport]
    """What policy would change."""


class TallyReport(ReportPart, frozen=True, kw_only=True):
    """Pods, to one policy, as in its status."""

    policy: str
    mode: str
    matched: int
    changed: int
    unpatched: int
    would: int
    skipped: int
    overruled: int
    error: str


class OverheadReport(ReportPart, frozen=True, kw_only=True):
    """Who fills pod overhead in, as running pods show it."""

    filled_by: str | None
    """`server`, `webhook` (the API server does not); null: no pod shows it."""
    shown_by: str
    """The pod; empty where none shows it."""
    wrong: ReasonReport | None
    """Why the setting is wrong."""


class RunningReport(ReportPart, frozen=True, kw_only=True):
    """Published as deploy/schemas/running-report.schema.json."""

    api_version: str = API_VERSION
    kind: str = "RunningReport"
    policies: list[TallyReport]
    notes: list[str]
    """What was assumed."""
    pods: int
    findings: list[RunningFindingReport]
    overhead: OverheadReport

    @property
    def is_well(self) -> bool:
        return self.overhead.wrong is None and not any(
            f.what in ("unpatched", "overhead", "refused") for f in self.findings
        )


def running(
    asked: live_cluster.ClusterOptions, policy_paths: Iterable[str], terms: AdmissionSettings, *, vpa_acts: bool
) -> RunningReport:
    """Everything read, every pod looked at once."""
    documents, mistakes = _read(live_cluster.read_live_objects(asked, WANTED))
    built = build(documents)
    policies, notes, more = _policies(tuple(policy_paths), documents)
    mistakes += [*built.mistakes, *more]
    if mistakes:
        raise UsageError(mistakes)
    facts = from_snapshot(built.snapshot, vpa_reach=anywhere(vpa_acts), own_namespace=terms.own_namespace)
    since, told = _since(documents, Settings().configuration_name, all_read=live_cluster.LIVE in asked.paths)
    world = AuditInputs(policies=policies, facts=facts, terms=terms)
    pods = built.snapshot.all(Pod)
    seen = Auditor(most=sys.maxsize).look(map(AuditedPodReader(match_asks(policies).annotations), pods), world)
    return _report(findings(seen, world, since), world, seen.pods, [*notes, *told, *map(str, facts.problems)])


def _read(contents: list[live_cluster.Content]) -> tuple[list[Document], list[ConfigError]]:
    readings = [read_documents(name, content) for name, content in contents]
    return [d for found in readings for d in found.documents], [m for found in readings for m in found.mistakes]


def _policies(paths: tuple[str, ...], documents: list[Document]) -> tuple[Policies, list[str], list[ConfigError]]:
    """Those named; else the cluster's own; else those we ship. A broken one of the cluster's is told and left out."""
    own = [document for document in documents if document.kind == KIND]
    if paths or not own:
        loaded = load_policies(live_cluster.read(paths) if paths else live_cluster.shipped())
        notes = [] if paths else ["There are no PodPolicies: compared with our recommended set."]
        return loaded.policies, notes, list(loaded.mistakes)
    found = [load_document(document) for document in own]
    notes = [f"Left out: {mistake}" for _, mistakes in found for mistake in mistakes]
    return Policies.of(*(policy for policy, _ in found if policy is not None)), notes, []


def _since(documents: list[Document], configuration: str, *, all_read: bool) -> tuple[ChangeTimes, list[str]]:
    """As far as the objects tell: kubectl prints no managed fields unless asked, then creation counts."""
    policies, classes, webhook = {}, {}, None
    seen = all_read or any(document.kind == CONFIGURATION for document in documents)
    for document in documents:
        if document.kind not in ("PodPolicy", "RuntimeClass", CONFIGURATION):
            continue
        meta = _meta(document.value)
        match document.kind:
            case "PodPolicy":
                policies[meta.name] = seconds(meta.written("spec"))
            case "RuntimeClass":
                classes[meta.name] = seconds(meta.written("overhead", "scheduling"))
            case "MutatingWebhookConfiguration" if is_ours(meta, configuration):
                webhook = seconds(meta.creation_timestamp)
    notes = [] if seen else ["No webhook configurations were read: when ours was registered is not known."]
    since = ChangeTimes(
        policies={name: at for name, at in policies.items() if at is not None},
        classes={name: at for name, at in classes.items() if at is not None},
        webhook=webhook if seen else UNREGISTERED_UNKNOWN,
    )
    return since, notes


def _meta(value: Any) -> Dated:
    try:
        return msgspec.convert(value.get("metadata", {}), Dated)
    except (msgspec.ValidationError, AttributeError):
        return Dated()


def _report(found: Findings, world: AuditInputs, pods: int, notes: list[str]) -> RunningReport:
    modes = {policy.name: policy.spec.mode for policy in world.policies.all}
    told = (
        ("unpatched", found.unpatched), ("overhead", found.overhead), ("refused", found.refused),
        ("watching", found.watching), ("left-out", found.left_out),
    )  # fmt: skip
    each = [_finding(what, one, world.facts) for what, same in told for one in same]
    return RunningReport(
        policies=[_tally(name, modes[name], tally) for name, tally in found.tallies.items()],
        notes=notes,
        pods=pods,
        findings=_together(each),
        overhead=_overhead(found),
    )


def _finding(what: str, one: AuditFinding, facts: ClusterFacts) -> RunningFindingReport:
    names = sorted(pod.name for pod in one.pods)
    owners = [o for o in one.owners if (one.alike.namespace, o.kind, o.name) in facts.owners] or one.owners[:1]
    return RunningFindingReport(
        what=what,
        namespace=one.alike.namespace,
        owner=str(owners[-1]) if owners else f"Pod/{names[0]}",
        policy=one.policy,
        reason=why(one.reason),
        pods=len(names),
        names=names,
        changes=[change_report(change) for change in one.changes],
    )


def _together(found: list[RunningFindingReport]) -> list[RunningFindingReport]:
    """Those of one owner and cause whose changes are the same: a StatefulSet's pods are no two alike."""
    merged: dict[tuple[object, ...], RunningFindingReport] = {}
    for one in found:
        key = (one.what, one.namespace, one.owner, one.policy, one.reason.code, msgspec.json.encode(one.changes))
        before = merged.get(key)
        names = sorted([*(before.names if before else ()), *one.names])
        merged[key] = msgspec.structs.replace(before or one, names=names, pods=len(names))
    return list(merged.values())


def _tally(name: str, mode: str, tally: PolicyTally) -> TallyReport:
    return TallyReport(
        policy=name, mode=mode, matched=tally.matched, changed=tally.changed, unpatched=tally.unpatched,
        would=tally.would, skipped=tally.skipped, overruled=tally.overruled, error=tally.failure,
    )  # fmt: skip


def _overhead(found: Findings) -> OverheadReport:
    wrong = why(found.setting) if found.setting is not None else None
    if isinstance(found.filled_by, NotYet):
        return OverheadReport(filled_by=None, shown_by="", wrong=wrong)
    shown_by = f"{found.filled_by.namespace}/{found.filled_by.pod}"
    return OverheadReport(filled_by=found.filled_by.by, shown_by=shown_by, wrong=wrong)
