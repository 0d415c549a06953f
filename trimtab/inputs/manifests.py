"""Writes the decisions of admission into the text of manifests; all other text is left as its author wrote it."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from trimtab.admission.pod_templates import PodTemplateLocation
from trimtab.admission.preview import Preview, write_changes
from trimtab.cluster.yaml_documents import unpack_gzip
from trimtab.cluster.yaml_edit import edit_yaml
from trimtab.inputs.live_cluster import Content

Decided = tuple[PodTemplateLocation, Sequence[Preview]]
"""A pod template, and the previews of admission whose changes are written into the template, in this order."""


def rewrite_manifests(contents: Iterable[Content], decided: Sequence[Decided]) -> str:
    """Returns the text of all files, concatenated; documents with a changed pod are edited in place."""
    changed_pods = {  # a file that is named twice is edited once
        (template.document.file, template.document.index, template.path): (template, commits)
        for template, commits in decided
        if commits
    }
    joined = ""
    for file, content in contents:
        text = _edit_file(
            unpack_gzip(content).decode(), [pod for pod in changed_pods.values() if pod[0].document.file == file]
        )
        if joined:
            text = text.removeprefix("\ufeff")
            joined += "" if joined.endswith("\n") else "\n"
            joined += "" if text.startswith("---") else "---\n"
        joined += text
    return joined


def _edit_file(text: str, pods: list[Decided]) -> str:
    """Returns the edited text of one file.

    Documents are edited from the last to the first, so that the positions of earlier ones stay valid.
    """
    byte_order_mark = "\ufeff" if text.startswith("\ufeff") else ""
    text = text.removeprefix(byte_order_mark)
    by_root: dict[int, list[Decided]] = {}
    for template, commits in pods:
        by_root.setdefault(id(template.document.root), []).append((template, commits))
    for document_pods in reversed(list(by_root.values())):
        root = document_pods[0][0].document.root
        # A document without lines is the whole file: JSON.
        start, end = (0, len(text)) if root is None else (root.start_mark.index, root.end_mark.index)
        # From the start of the line, because the document's indentation belongs to its text.
        start = text.rfind("\n", 0, start) + 1
        text = text[:start] + edit_yaml(text[start:end], partial(_rewrite_pods, document_pods)) + text[end:]
    return byte_order_mark + text


def _rewrite_pods(pods: list[Decided], value: Any) -> Any:
    """Write the decisions into the pods of one document, and return the document."""
    for template, commits in pods:
        manifest = value
        for step in template.document.within:
            manifest = manifest[step]
        for pod_preview in commits:
            write_changes(manifest, template.path, pod_preview)
    return value
