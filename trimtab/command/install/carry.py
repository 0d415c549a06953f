"""Manifests into a cluster by server-side apply, and out of it again; the certificate before whatever needs it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import certs
from trimtab.command.install.manifests import KEPT
from trimtab.command.install.names import CONFIGURATION, SECRET, WEBHOOK, Manifest
from trimtab.command.install.traces import Done, Traces
from trimtab.command.install.values import Values
from trimtab.kube import objects, whole
from trimtab.kube.client import Client
from trimtab.kube.errors import Conflict, NotAllowed
from trimtab.kube.writer import Writer
from trimtab.runtime import clock
from webhook import shared
from webhook.keeping import called

MANAGER = "trimtab-install"
"""Field manager of what is applied: what the processes write (the pair, the caBundle) is theirs, and stays."""


def elsewhere(client: Client, namespace: str) -> str | None:
    """The namespace of another installation that API servers of this cluster call; None: there is none, or we may not
    look. Configurations are the cluster's: taking them over, or away, would cut that one off.
    """
    for kind in shared.CONFIGURATIONS:
        try:
            found = whole.get(client, kind, CONFIGURATION)
        except NotAllowed:
            continue
        theirs = shared.namespaces(found or {}) - {namespace}
        if theirs:
            return min(theirs)
    return None


def apply(writer: Writer, manifests: Sequence[Manifest], values: Values) -> Iterator[Done]:
    """One after the other; the first pair as soon as its Secret is there, the caBundle as soon as the configuration is.

    Raises any KubeFault; what came before stays applied, and applying again goes on from there.
    """
    for manifest in manifests:
        objects.apply(replace(writer, manager=MANAGER), manifest)
        yield Done(_told(manifest), "applied")
        if values.cert_manager or writer.dry_run:
            continue
        if manifest["kind"] == "Secret" and _issued(writer, values):
            yield Done(_told(manifest), "issued")
        if manifest["kind"] in shared.CONFIGURATIONS and _trusted(writer, manifest["kind"], values):
            yield Done(_told(manifest), "trusted")


def remove(
    writer: Writer, manifests: Sequence[Manifest], values: Values, *, everything: bool, keep_usage: bool = False
) -> Iterator[Done]:
    """In reverse: first nobody calls us any more, then we go, and what we wrote. Namespace and CRD only with
    `everything`.
    """
    yield from Traces(writer=writer, namespace=values.namespace, keep_usage=keep_usage).take_back()
    for manifest in reversed(manifests):
        if manifest["kind"] in KEPT and not everything:
            yield Done(_told(manifest), "kept")
        elif manifest["kind"] not in shared.CONFIGURATIONS:
            meta = manifest["metadata"]
            gone = objects.delete(writer, manifest["kind"], meta["name"], meta.get("namespace", ""))
            yield Done(_told(manifest), "removed" if gone else "was not there")


def _issued(writer: Writer, values: Values) -> bool:
    secret = whole.get(writer.client, "Secret", SECRET, values.namespace)
    if secret is None or shared.folder_of(secret) is not None:
        return False
    step = certs.next_step(certs.Seen(store=None), called(WEBHOOK, values.namespace), now=clock.utc())
    assert isinstance(step, certs.Store)
    return _put(writer, shared.filled(secret, step.folder))


def _trusted(writer: Writer, kind: str, values: Values) -> bool:
    """The configuration is read before the Secret, as every replica does."""
    configuration = whole.get(writer.client, kind, CONFIGURATION)
    secret = whole.get(writer.client, "Secret", SECRET, values.namespace)
    folder = shared.folder_of(secret or {})
    if configuration is None or folder is None or shared.left_alone(configuration):
        return False
    if all(bundle == folder.bundle for bundle in shared.bundles(configuration)):
        return False
    return _put(writer, shared.trusting(configuration, folder.bundle))


def _put(writer: Writer, document: whole.Whole) -> bool:
    try:
        whole.put(writer, document)
    except Conflict:
        return False  # a replica was quicker, and did the same
    return True


def _told(manifest: Manifest) -> str:
    return objects.told(manifest["kind"], manifest["metadata"]["name"], manifest["metadata"].get("namespace", ""))
