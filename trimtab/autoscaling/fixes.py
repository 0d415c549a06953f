"""Turns findings into changed manifests.

A manifest from a file is changed in its own text. For an object of a cluster, an apply configuration is written: it has
only the changed fields, and is to be applied server-side by a field manager of its own; lists are written whole,
because most of them are atomic. A field of a live object cannot be removed in this way, so such a change is left out
and reported.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from trimtab.autoscaling.lint_snapshot import LintSnapshot
from trimtab.autoscaling.read_snapshot import reread_snapshot
from trimtab.autoscaling.rule import REMOVED, LintSubject, ManifestChange, NewManifest, RuleFinding
from trimtab.cluster.yaml_documents import Document
from trimtab.cluster.yaml_edit import edit_yaml
from trimtab.cluster.yaml_parser import Path

FIELD_MANAGER = "trimtab-lint"


MAX_ROUNDS = 10
"""After so many rounds no more fixes of fixes are added. Each round fixes what the changes before it made visible."""

FindProblems = Callable[[LintSnapshot], Iterable[RuleFinding]]
IsAccepted = Callable[[Document, Document], bool]


@dataclass(frozen=True, slots=True)
class FixPlan:
    """The changed manifests, and the findings that no manifest fixes."""

    changes: Mapping[LintSubject, tuple[ManifestChange, ...]]
    new: tuple[NewManifest, ...]
    fixed: tuple[RuleFinding, ...]
    """The findings that the changed manifests no longer have."""
    unfixed: tuple[RuleFinding, ...]


def plan_fixes(snapshot: LintSnapshot, find_problems: FindProblems, is_accepted: IsAccepted) -> FixPlan:
    """Returns the changes after which no finding is left that a change could fix.

    `find_problems` returns the findings of a snapshot that are to be fixed. `is_accepted` returns whether the API
    server takes an object as it would be, given the document before and after; changes that it would refuse are left
    out. Of several changes of one field in a round, the first one is made; the others are decided anew in the next
    round, from the changed objects.
    """
    first = tuple(find_problems(snapshot))
    plan = _Plan(snapshot)
    findings: Iterable[RuleFinding] = first
    for _ in range(MAX_ROUNDS):
        if not plan.add_round(findings, is_accepted):
            break
        findings = tuple(find_problems(plan.current))
    left = {_identity(finding) for finding in findings}
    return FixPlan(
        {subject: tuple(changes) for subject, changes in plan.changes.items()},
        tuple(plan.new.values()),
        tuple(finding for finding in first if _identity(finding) not in left),
        tuple(finding for finding in first if _identity(finding) in left),
    )


def _identity(finding: RuleFinding) -> tuple[str, LintSubject, Path]:
    return finding.rule, finding.subject, finding.path


class _Plan:
    """The changes of all rounds, and the snapshot as it is after them."""

    def __init__(self, snapshot: LintSnapshot) -> None:
        self.current = snapshot
        self.changes: dict[LintSubject, list[ManifestChange]] = {}
        self.new: dict[LintSubject, NewManifest] = {}
        self._made: set[tuple[LintSubject, Path, str]] = set()

    def add_round(self, findings: Iterable[RuleFinding], is_accepted: IsAccepted) -> bool:
        """Add the changes of the findings that can be made together, and return whether there was one."""
        changed: dict[LintSubject, Document] = {}
        paths: dict[LintSubject, list[Path]] = defaultdict(list)
        added: list[NewManifest] = []
        for finding in findings:
            if not is_fixable(finding, self.current):
                continue
            new = [one for one in finding.changes if isinstance(one, NewManifest) and one.subject not in self.new]
            changes = [one for one in finding.changes if isinstance(one, ManifestChange)]
            attempt = {
                change.subject: changed.get(change.subject, self.current.documents[change.subject])
                for change in changes
            }
            is_apart = all(_is_elsewhere(change.path, path) for change in changes for path in paths[change.subject])
            is_made = {(one.subject, one.path, repr(one.value)) for one in changes} <= self._made
            if not is_apart or (is_made and not new):
                continue
            after = {
                subject: document.with_value(
                    change_value(document.value, [change for change in changes if change.subject == subject])
                )
                for subject, document in attempt.items()
            }
            if not all(is_accepted(attempt[subject], document) for subject, document in after.items()):
                continue
            changed.update(after)
            added += new
            self.new.update((one.subject, one) for one in new)
            for change in changes:
                paths[change.subject].append(change.path)
                self._made.add((change.subject, change.path, repr(change.value)))
                self.changes.setdefault(change.subject, []).append(change)
        if not changed and not added:
            return False
        documents = dict(self.current.documents) | changed
        for number, one in enumerate(added):
            documents[one.subject] = Document(file="added", index=number, value=one.manifest)
        self.current = reread_snapshot(self.current, documents.values())
        return True


def is_fixable(finding: RuleFinding, snapshot: LintSnapshot) -> bool:
    """Returns whether `--fix` can fix the finding: it has changes, and each of them can be written."""
    return bool(finding.changes) and all(_is_possible(change, snapshot) for change in finding.changes)


def _is_possible(change: ManifestChange | NewManifest, snapshot: LintSnapshot) -> bool:
    if isinstance(change, NewManifest):
        return True
    document = snapshot.documents.get(change.subject)
    # A controller writes the objects that it owns anew, so a change of theirs would be lost.
    is_own = document is not None and not document.is_derived and change.subject not in snapshot.owners
    return is_own and not (snapshot.is_live and change.value is REMOVED)


def _is_elsewhere(one: Path, other: Path) -> bool:
    """Returns whether neither path is inside the other."""
    shorter = min(len(one), len(other))
    return one[:shorter] != other[:shorter]


def change_value(value: Any, changes: Iterable[ManifestChange]) -> Any:
    """Returns a copy of a manifest with the changes. Mappings on the way to a field are added if they are missing."""
    changed = deepcopy(value)
    for change in changes:
        holder = changed
        for step, following in zip(change.path[:-1], change.path[1:], strict=True):
            holder = _enter_step(holder, step, following)
        last = change.path[-1]
        if change.value is REMOVED:
            if isinstance(holder, dict):
                holder.pop(last, None)
        elif isinstance(holder, list) and last == len(holder):
            holder.append(change.value)
        else:
            holder[last] = change.value
    return changed


def _enter_step(holder: Any, step: str | int, following: str | int) -> Any:
    empty: Any = [] if isinstance(following, int) else {}
    if isinstance(holder, list):
        assert isinstance(step, int)
        if step == len(holder):
            holder.append(empty)
        return holder[step]
    if holder.get(step) is None:
        holder[step] = empty
    return holder[step]


def edit_text(text: str, document: Document, changes: Iterable[ManifestChange]) -> str:
    """Returns the text of a file with one of its documents changed; everything else in it stays the same."""
    root = document.root
    # A document without lines is the whole file: JSON.
    start, end = (0, len(text)) if root is None else (root.start_mark.index, root.end_mark.index)
    start = text.rfind("\n", 0, start) + 1

    def change_inside(value: Any) -> Any:
        if not document.within:
            return change_value(value, changes)
        holder = value
        for step in document.within[:-1]:
            holder = holder[step]
        holder[document.within[-1]] = change_value(holder[document.within[-1]], changes)
        return value

    return text[:start] + edit_yaml(text[start:end], change_inside) + text[end:]


def apply_configuration(value: Mapping[str, Any], changes: Iterable[ManifestChange]) -> dict[str, Any]:
    """Returns the fields of an object for server-side apply: the changed fields, with every list written whole."""
    changes = tuple(changes)
    changed = change_value(value, changes)
    metadata = changed.get("metadata", {})
    configuration: dict[str, Any] = {
        "apiVersion": changed.get("apiVersion"),
        "kind": changed.get("kind"),
        "metadata": {key: metadata[key] for key in ("name", "namespace") if metadata.get(key)},
    }
    for change in changes:
        source: Any = changed
        target: Any = configuration
        for position, step in enumerate(change.path):
            is_last = position + 1 == len(change.path)
            if is_last or isinstance(source[step], list):
                target[step] = deepcopy(source[step])
                break
            source, target = source[step], target.setdefault(step, {})
    return configuration
