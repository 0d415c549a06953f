"""Turns findings into changed manifests.

A manifest from a file is changed in its own text. For an object of a cluster, an apply configuration is written: it has
only the changed fields, and is to be applied server-side by a field manager of its own; lists are written whole,
because most of them are atomic. A field of a live object cannot be removed in this way, so such a change is left out
and reported.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from trimtab.autoscaling.lint_snapshot import LintSnapshot
from trimtab.autoscaling.rule import REMOVED, LintSubject, ManifestChange, NewManifest, RuleFinding
from trimtab.cluster.yaml_documents import Document
from trimtab.cluster.yaml_edit import edit_yaml
from trimtab.cluster.yaml_parser import Path

FIELD_MANAGER = "trimtab-lint"


@dataclass(frozen=True, slots=True)
class FixPlan:
    """The changed manifests, and the findings that no manifest fixes."""

    changes: Mapping[LintSubject, tuple[ManifestChange, ...]]
    new: tuple[NewManifest, ...]
    fixed: tuple[RuleFinding, ...]
    unfixed: tuple[RuleFinding, ...]


def plan_fixes(findings: Iterable[RuleFinding], snapshot: LintSnapshot) -> FixPlan:
    """Returns the changes of all findings, by object. If several findings change the same field, the first one
    decides."""
    changes: dict[LintSubject, list[ManifestChange]] = defaultdict(list)
    new: dict[LintSubject, NewManifest] = {}
    fixed: list[RuleFinding] = []
    unfixed: list[RuleFinding] = []
    for finding in findings:
        possible = is_fixable(finding, snapshot)
        (fixed if possible else unfixed).append(finding)
        for change in finding.changes if possible else ():
            if isinstance(change, NewManifest):
                new.setdefault(change.subject, change)
            elif all(_is_elsewhere(change.path, other.path) for other in changes[change.subject]):
                changes[change.subject].append(change)
    return FixPlan(
        {subject: tuple(of_subject) for subject, of_subject in changes.items()},
        tuple(new.values()),
        tuple(fixed),
        tuple(unfixed),
    )


def is_fixable(finding: RuleFinding, snapshot: LintSnapshot) -> bool:
    """Returns whether `--fix` can fix the finding: it has changes, and each of them can be written."""
    return bool(finding.changes) and all(_is_possible(change, snapshot) for change in finding.changes)


def _is_possible(change: ManifestChange | NewManifest, snapshot: LintSnapshot) -> bool:
    if isinstance(change, NewManifest):
        return True
    return change.subject in snapshot.documents and not (snapshot.is_live and change.value is REMOVED)


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
