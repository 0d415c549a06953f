"""A rule of lint, its findings, and the changes that fix them.

A rule is a pure function of a `LintSnapshot`. If the snapshot lacks what the rule needs (usage, live objects, nodes),
the rule is reported as "not checked", which does not mean "nothing wrong".
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from trimtab.cluster.kinds import GroupKind
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.yaml_parser import Path

if TYPE_CHECKING:
    from trimtab.autoscaling.lint_snapshot import LintSnapshot


class LintSeverity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    """Pods are lost or stay pending, or replica counts grow without end: now, or as soon as the load changes."""
    WARNING = "warning"
    """The workload works until something else happens: a drain, a zone outage, a restart of a webhook."""
    INFO = "info"
    """A matter of cost, or of a setting that would be better placed elsewhere."""


class Needs(StrEnum):
    """What a rule needs in addition to manifests. The value says what was missing."""

    LIVE = "objects of a running cluster (--cluster)"
    USAGE = "a history of usage (--usage, or published recommendations)"
    REPLICAS = "the history of replica counts (--usage with several pods of a workload)"
    MANIFESTS = "manifests (-f), because in a cluster every Deployment has a replica count"
    VERSION = "the Kubernetes version (--kubernetes 1.37, or nodes)"
    VPA_WEBHOOK = "webhook configurations and EndpointSlices (--cluster live)"
    AUTOSCALER_FLAGS = "the flags of the cluster autoscaler (its Deployment among the objects)"
    RESERVATIONS = "measured reservations of nodes"
    KUBELETS = "KubeletConfigurations"
    POLICIES = "PodPolicies"


@dataclass(frozen=True, slots=True, order=True)
class LintSubject:
    """The object that a finding is about."""

    kind: GroupKind
    namespace: str
    """The namespace of the object; empty for a cluster-scoped object."""
    name: str

    @property
    def key(self) -> OwnerKey:
        """The object as an owner of pods."""
        return OwnerKey(self.namespace, self.kind, self.name)

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


REMOVED: Any = type("Removed", (), {"__repr__": lambda self: "REMOVED"})()
"""The value in a change that means that the field is removed."""


@dataclass(frozen=True, slots=True)
class ManifestChange:
    """A field of an object, and the value that it should have."""

    subject: LintSubject
    path: Path
    value: Any
    """The new value as plain data, or `REMOVED`."""


@dataclass(frozen=True, slots=True)
class NewManifest:
    """An object that should be added to the cluster."""

    subject: LintSubject
    manifest: Any


Fix = ManifestChange | NewManifest


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFinding:
    """One finding of one rule on one object."""

    rule: str
    severity: LintSeverity
    subject: LintSubject
    path: Path = ()
    """The path of the field that is wrong or missing."""
    sentence: str
    outcome: str
    """What will happen, with direction and speed if these can be computed."""
    fix: str
    """What to do, as a sentence."""
    changes: tuple[Fix, ...] = ()
    """The changes that `--fix` writes; empty if the user must decide something."""

    @property
    def sort_key(self) -> tuple[int, str, LintSubject, str]:
        """The key that sorts findings: errors first, then by rule and object."""
        return list(LintSeverity).index(self.severity), self.rule, self.subject, self.sentence


FindingIterator = Iterator[RuleFinding]
RuleFunction = Callable[["LintRule", "LintSnapshot"], Iterable[RuleFinding]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LintRule:
    """One rule: the text of its page, and its function."""

    code: str
    severity: LintSeverity
    """The highest severity of the rule's findings."""
    title: str
    """What the rule finds, as a noun phrase, such as "A CPU limit"."""
    why: str
    source: str
    fix: str
    """The general remedy. A finding may have a more specific one."""
    needs: tuple[Needs, ...] = ()
    theme: str = ""
    function: RuleFunction = field(repr=False)

    def find_problems(self, snapshot: "LintSnapshot") -> tuple[RuleFinding, ...]:
        """Returns every finding of the rule in the snapshot."""
        return tuple(self.function(self, snapshot))

    def report_problem(
        self,
        subject: LintSubject,
        sentence: str,
        *,
        path: Path = (),
        severity: LintSeverity | None = None,
        outcome: str = "",
        fix: str = "",
        changes: Iterable[Fix] = (),
    ) -> RuleFinding:
        """Returns a finding. Texts that the caller does not give are taken from the rule's page."""
        return RuleFinding(
            rule=self.code,
            severity=severity or self.severity,
            subject=subject,
            path=path,
            sentence=sentence,
            outcome=outcome or self.why,
            fix=fix or self.fix,
            changes=tuple(changes),
        )


def lint_rule(
    code: str, severity: LintSeverity, title: str, *, why: str, source: str, fix: str, needs: Iterable[Needs] = ()
) -> Callable[[RuleFunction], LintRule]:
    """Returns a decorator that turns a function into a rule. The rule's theme is the name of the module in which the
    function is."""

    def create_rule(function: RuleFunction) -> LintRule:
        return LintRule(
            code=code,
            severity=severity,
            title=title,
            why=why,
            source=source,
            fix=fix,
            needs=tuple(needs),
            theme=function.__module__.rpartition(".")[2],
            function=function,
        )

    return create_rule
