"""Manifests as their authors would commit them: what was decided written into the text, everything else as it was."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from trimtab.admission.pod_templates import PodTemplateLocation
from trimtab.admission.preview import Preview, rewrite
from trimtab.cli.live_cluster import Content
from trimtab.cluster.yaml_documents import unpacked
from trimtab.cluster.yaml_edit import edited

Decided = tuple[PodTemplateLocation, Preview]


def committed(contents: Iterable[Content], decided: Sequence[Decided]) -> str:
    """The text of all files one after the other, each document that holds a changed pod edited in place."""
    changed = {  # a file that was named twice is edited once
        (found.document.file, found.document.index, found.path): (found, made)
        for found, made in decided
        if any(call.operations for call in made.calls)
    }
    joined = ""
    for file, content in contents:
        text = _edited(unpacked(content).decode(), [each for each in changed.values() if each[0].document.file == file])
        if joined:
            text = text.removeprefix("\ufeff")
            joined += "" if joined.endswith("\n") else "\n"
            joined += "" if text.startswith("---") else "---\n"
        joined += text
    return joined


def _edited(text: str, changed: list[Decided]) -> str:
    """One file. Documents are edited from the last to the first, so that places before them stay."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    text = text.removeprefix(mark)
    by_root: dict[int, list[Decided]] = {}
    for found, made in changed:
        by_root.setdefault(id(found.document.root), []).append((found, made))
    for those in reversed(list(by_root.values())):
        root = those[0][0].document.root
        # A document without lines is the whole file: JSON.
        start, end = (0, len(text)) if root is None else (root.start_mark.index, root.end_mark.index)
        start = text.rfind("\n", 0, start) + 1
        text = text[:start] + edited(text[start:end], partial(_changed, those)) + text[end:]
    return mark + text


def _changed(those: list[Decided], value: Any) -> Any:
    for found, made in those:
        manifest = value
        for step in found.document.within:
            manifest = manifest[step]
        rewrite(manifest, found.path, made)
    return value
