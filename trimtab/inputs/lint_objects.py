"""Reads the objects for `trimtab lint`: manifests, a snapshot, or a live cluster.

From a live cluster, the kinds of `LISTED_KINDS` are listed, without Secrets. The objects have all their fields, unlike
those of a capture. A kind that the user may not list, or that the API server does not have, is named in a note.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.autoscaling.lint_snapshot import LintSnapshot
from trimtab.autoscaling.read_snapshot import LISTED_KINDS, SHAPES, read_lint_snapshot
from trimtab.cluster import scaled_objects
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.kinds import built_in
from trimtab.cluster.published_reservations import RESERVATIONS_LABEL
from trimtab.cluster.yaml_documents import Document, UndecodedItem, read_documents
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import LoginError, RuntimeFailure, UsageError
from trimtab.inputs.overlay import lay_over
from trimtab.inputs.progress import progress
from trimtab.runtime import clock

if TYPE_CHECKING:
    from trimtab.kube.client import Client
    from trimtab.kube.resources import ListSource


@dataclass(frozen=True, slots=True)
class LintObjects:
    """The snapshot, the texts of its files, and notes for the reader of the report."""

    snapshot: LintSnapshot
    contents: tuple[live_cluster.Content, ...] = ()
    notes: tuple[str, ...] = ()
    before: LintSnapshot | None = None
    """With files and a cluster: the cluster without the files."""
    files: frozenset[str] = frozenset()
    """With files and a cluster: the names of the files."""


def read_lint_objects(
    filenames: tuple[str, ...], cluster: live_cluster.ClusterOptions, minor: int | None
) -> LintObjects:
    """Returns the objects of the files or of the cluster; with both, the cluster as it is after the files are applied.
    Raises UsageError with every mistake, and RuntimeFailure if the cluster cannot be read."""
    if not filenames and not cluster.paths:
        raise UsageError([ConfigError(file="command line", expected="--filename or --cluster", got="neither")])
    if not cluster.paths:
        return _read_files(filenames, minor, is_live=False)
    if live_cluster.LIVE in cluster.paths:
        before = _read_live_objects(cluster, minor)
    else:
        before = _read_files(cluster.paths, minor, is_live=True)
    if not filenames:
        return before
    manifests = _read_files(filenames, minor, is_live=False)
    after = lay_over(before.snapshot, manifests.snapshot.documents)
    files = frozenset(name for name, _ in manifests.contents)
    return LintObjects(after, manifests.contents, (*manifests.notes, *before.notes), before.snapshot, files)


def _read_files(paths: tuple[str, ...], minor: int | None, *, is_live: bool) -> LintObjects:
    """Returns the objects of manifests, or of a snapshot of a cluster."""
    contents = live_cluster.read_paths(paths)
    documents: list[Document] = []
    mistakes: list[ConfigError] = []
    for name, content in contents:
        reading = read_documents(name, content, takes_repeated_keys=True)
        documents += reading.documents
        mistakes += reading.mistakes
    result = read_lint_snapshot(
        documents, is_live=is_live, minor=minor, now=_snapshot_time(documents) if is_live else None
    )
    if mistakes or result.mistakes:
        raise UsageError([*mistakes, *result.mistakes])
    if not result.snapshot.documents:
        expected = "at least one object that a rule of lint applies to"
        raise UsageError([ConfigError(file=", ".join(paths), expected=expected, got="none")])
    note = "As in a capture, probes and command lines are not read: objects that differ from your files are checked "
    notes = (note + "without probes and command lines.",) if is_live else ()
    return LintObjects(result.snapshot, tuple(contents), (*_note_unread(documents, result.snapshot), *notes))


def _note_unread(documents: Iterable[Document], snapshot: LintSnapshot) -> Iterator[str]:
    """Yields a note on the objects that no rule reads, and one on the HPAs that KEDA creates."""
    unread = Counter(
        document.kind or "documents without a kind"
        for document in documents
        if document.kind not in SHAPES and document.kind != scaled_objects.KIND
    )
    if unread:
        kinds = ", ".join(f"{kind} ({count})" for kind, count in sorted(unread.items()))
        yield f"No rule applies to objects of these kinds, so they were not read: {kinds}."
    derived = sorted(str(subject) for subject, document in snapshot.documents.items() if document.is_derived)
    if derived:
        yield f"KEDA creates these HPAs from ScaledObjects, and they were checked as well: {', '.join(derived)}."


KUBELET_MAP = "kubelet-config"
"""The name of kubeadm's ConfigMap in kube-system with the configuration of all kubelets."""
_TIME = re.compile(rb'"(?:lastScaleTime|lastTransitionTime|creationTimestamp|renewTime)":"([^"]{20,30})"')


def _snapshot_time(documents: Iterable[Document]) -> int | None:
    """Returns the newest time in the objects, which is about when the snapshot was made; None if no object has a
    time."""
    from trimtab.cluster.timestamps import parse_timestamp

    newest: int | None = None
    for document in documents:
        text = bytes(document.text) if document.text is not None else msgspec.json.encode(document.value)
        for match in _TIME.finditer(text):
            at = parse_timestamp(match[1].decode())
            newest = at if newest is None or (at is not None and at > newest) else newest
    return newest


def _read_live_objects(cluster: live_cluster.ClusterOptions, minor: int | None) -> LintObjects:
    from trimtab.kube.client import connect_to_cluster
    from trimtab.kube.errors import KubeFault, NotConfigured

    if cluster.paths != (live_cluster.LIVE,):
        raise UsageError(
            [
                ConfigError(
                    file="command line",
                    expected="--cluster live together with files",
                    got="files in addition to the live cluster",
                )
            ]
        )
    try:
        client = connect_to_cluster(cluster.kubeconfig, cluster.context)
        try:
            documents, kinds, notes = list_documents(client, lint_sources())
            server_minor = _server_minor(client) if minor is None else minor
        finally:
            client.close()
    except NotConfigured as error:
        raise LoginError(str(error)) from None
    except KubeFault as error:
        raise RuntimeFailure(str(error)) from None
    now = int(clock.utc_now().timestamp())
    reading = read_lint_snapshot(documents, is_live=True, now=now, minor=server_minor, kinds=kinds)
    unreadable = [f"This object is not checked, because it cannot be read: {mistake}" for mistake in reading.mistakes]
    return LintObjects(reading.snapshot, (), (*notes, *unreadable))


def list_documents(client: Client, sources: Iterable[ListSource]) -> tuple[list[Document], list[str], list[str]]:
    """Returns the objects of a live cluster, the kinds that could be listed, and notes on the kinds that could not be
    listed."""
    from trimtab.kube.errors import NotAllowed, NotFound

    documents: list[Document] = []
    kinds: list[str] = []
    notes: list[str] = []
    for source in sources:
        progress().show_object(str(source))
        try:
            documents += _list_source(client, source)
        except NotFound:
            # A CustomResourceDefinition that is not installed: the cluster has no objects of the kind.
            pass
        except NotAllowed as error:
            if error.status != 403:
                raise
            notes.append(f"These objects are not checked, because you may not list them: {source.plural}.")
            continue
        kinds.append(source.kind)
    return documents, kinds, notes


def lint_sources() -> tuple[ListSource, ...]:
    """Returns what is listed for lint: all kinds that rules read.

    ConfigMaps are listed two more times: those with measured reservations, by their label, and kubeadm's
    KubeletConfiguration, by its name."""
    from trimtab.kube.resources import ListSource, list_sources

    config_maps = ListSource(kind="ConfigMap", group_version="v1", plural="configmaps")
    return (
        *list_sources(LISTED_KINDS),
        replace(config_maps, label_selector=RESERVATIONS_LABEL),
        replace(config_maps, field_selector=f"metadata.name={KUBELET_MAP}"),
    )


def _list_source(client: Client, source: ListSource) -> list[Document]:
    from trimtab.kube.listing import iter_pages

    documents: list[Document] = []
    for page in iter_pages(client, source):
        for raw in page.items:
            text = add_type(raw, source.group_version, source.kind)
            documents.append(UndecodedItem(live_cluster.LIVE, len(documents), text, built_in(source.kind)))
    return documents


def add_type(item: msgspec.Raw, group_version: str, kind: str) -> msgspec.Raw:
    """Returns an item of a list as JSON with its apiVersion and kind, which the API server omits in lists."""
    head = msgspec.json.encode({"apiVersion": group_version, "kind": kind})
    return msgspec.Raw(head[:-1] + b"," + bytes(item).lstrip()[1:])


def _server_minor(client: Client) -> int | None:
    """Returns the minor version of the API server, or None if the API server reports none."""
    body: Any = msgspec.json.decode(client.get("/version", doing="read the server's version"))
    digits = re.match(r"\d+", str(body.get("minor", ""))) if isinstance(body, dict) else None
    return int(digits[0]) if digits is not None else None
