"""Writes the fixes of findings into a folder: whole manifests for files, apply configurations for objects of a
cluster."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from trimtab.autoscaling.fixes import FIELD_MANAGER, FixPlan, apply_configuration, edit_text
from trimtab.autoscaling.lint_snapshot import LintSnapshot
from trimtab.autoscaling.rule import REMOVED
from trimtab.cli.output import format_manifests
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import format_count
from trimtab.cluster.yaml_documents import unpack_gzip
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.live_cluster import Content
from trimtab.inputs.private_file import write_private_file

HANDOVER_MANAGER = "hpa-handover"
_COUNT_ALONE = (
    '{"apiVersion":"{{.apiVersion}}","kind":"{{.kind}}","metadata":{"name":"{{.metadata.name}}",'
    '"namespace":"{{.metadata.namespace}}"},"spec":{"replicas":{{.spec.replicas}}}}'
)
"""A go-template for kubectl that prints the object with only its current `spec.replicas`."""


def write_fixes(folder: str, plan: FixPlan, snapshot: LintSnapshot, contents: Sequence[Content]) -> list[str]:
    """Write the files with the fixes, and return notes for the user. Raises UsageError if the folder cannot be
    written."""
    # File name → apply configuration, one per object of the cluster.
    files = (
        {
            f"{subject.kind.lower()}-{subject.namespace}-{subject.name}.yaml": format_manifests(
                [apply_configuration(snapshot.document_value(subject), changes)]
            )
            for subject, changes in plan.changes.items()
        }
        if snapshot.is_live
        else _manifest_files(plan, snapshot, contents)
    )
    if plan.new:
        files["added.yaml"] = format_manifests([addition.manifest for addition in plan.new])
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            write_private_file(str(Path(folder) / name), text.encode())
    except OSError as error:
        got = (error.strerror or type(error).__name__).lower()
        raise UsageError([ConfigError(file=folder, expected="a folder that can be written", got=got)]) from None
    lines = [
        f"Wrote {format_count(len(files), 'file')} to {folder}. The changes fix "
        f"{format_count(len(plan.fixed), 'finding')}."
    ]
    # A kubectl command for each object whose fix removes `replicas` from its manifest. The command makes another
    # field manager the owner of the current number of replicas. Otherwise the server-side apply of the fix would
    # remove the field, and the API server would set the default, 1.
    handovers = [
        f"kubectl get {subject.kind.lower()} {subject.name}"
        f"{f' -n {subject.namespace}' if subject.namespace else ''} -o go-template='{_COUNT_ALONE}' | "
        f"kubectl apply --server-side --field-manager {HANDOVER_MANAGER} --validate=false -f -"
        for subject, changes in plan.changes.items()
        if any(change.path == ("spec", "replicas") and change.value is REMOVED for change in changes)
    ]
    if handovers:
        lines += [
            "In a changed file spec.replicas is removed. If the object is already in the cluster, run the "
            "following commands first, which transfer the ownership of the running count. Otherwise the apply "
            "below may set the count to 1:",
            *(f"  {handover}" for handover in handovers),
            "If you apply without --server-side, remove spec.replicas with `kubectl apply edit-last-applied` instead.",
        ]
    if files:
        manager = f" --field-manager {FIELD_MANAGER} --force-conflicts" if snapshot.is_live else ""
        lines.append(f"Review the changed files, then run: kubectl apply --server-side{manager} -f {folder}")
    if plan.unfixed:
        is_one = len(plan.unfixed) == 1
        lines.append(
            f"{format_count(len(plan.unfixed), 'finding')} {'needs' if is_one else 'need'} your decision, so Trimtab "
            f"wrote no changed file for {'it' if is_one else 'them'}."
        )
    return lines


def _manifest_files(plan: FixPlan, snapshot: LintSnapshot, contents: Iterable[Content]) -> dict[str, str]:
    """Returns file name → content of the changed files; documents without a change keep their text."""
    files: dict[str, str] = {}
    for name, content in contents:
        changed = [
            (snapshot.documents[subject], changes)
            for subject, changes in plan.changes.items()
            if snapshot.documents[subject].file == name
        ]
        if not changed:
            continue
        text = unpack_gzip(content).decode()
        mark = "\ufeff" if text.startswith("\ufeff") else ""
        text = text.removeprefix(mark)
        # From the last document to the first, so that the positions of earlier ones stay valid.
        for document, changes in sorted(changed, key=lambda pair: pair[0].index, reverse=True):
            text = edit_text(text, document, changes)
        # The name that the file has in the folder. It includes the parent folders only if two files have the same
        # name.
        path = Path(name)
        short = "stdin.yaml" if name == "-" else path.name.removesuffix(".gz")
        files[
            short if short not in files else "-".join(part for part in path.parts if part not in ("/", ".", ".."))
        ] = mark + text
    return files
