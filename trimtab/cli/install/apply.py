"""Manifests into a cluster by server-side apply, and out of it again; the certificate before whatever needs it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import certs
from trimtab.cli.install.cleanup import CleanupStep, Uninstaller, clear_renamed_taints
from trimtab.cli.install.manifests import KEPT
from trimtab.cli.install.names import CONFIGURATION, SECRET, WEBHOOK, InstallValues, Manifest
from trimtab.kube import objects
from trimtab.kube.client import Client
from trimtab.kube.errors import Conflict, NotAllowed
from trimtab.kube.objects import Writer
from trimtab.runtime import clock
from webhook import cert_manager
from webhook.cert_manager import called

MANAGER = "trimtab-install"
"""Field manager of what is applied: what the processes write (the pair, the caBundle) is theirs, and stays."""


def elsewhere(client: Client, namespace: str) -> str | None:
    """The namespace of another installation that API servers of this cluster call; None: there is none, or we may not
    look. Configurations are the cluster's: taking them over, or away, would cut that one off.
    """
    for kind in cert_manager.CONFIGURATIONS:
        try:
            found = objects.get(client, kind, CONFIGURATION)
        except NotAllowed:
            continue
        theirs = cert_manager.namespaces(found or {}) - {namespace}
        if theirs:
            return min(theirs)
    return None


def apply(writer: Writer, manifests: Sequence[Manifest], values: InstallValues) -> Iterator[CleanupStep]:
    """One after the other; the first pair as soon as its Secret is there, the caBundle as soon as the configuration is.

    Raises any KubeFault; what came before stays applied, and applying again goes on from there.
    """
    for manifest in manifests:
        objects.apply(replace(writer, manager=MANAGER), manifest)
        yield CleanupStep(_told(manifest), "applied")
        if values.cert_manager or writer.dry_run:
            continue
        if _is_pair(manifest) and _issued(writer, values):
            yield CleanupStep(_told(manifest), "issued")
        if manifest["kind"] in cert_manager.CONFIGURATIONS and _trusted(writer, manifest["kind"], values):
            yield CleanupStep(_told(manifest), "trusted")
    yield from clear_renamed_taints(writer, values.namespace)


def remove(
    writer: Writer, manifests: Sequence[Manifest], values: InstallValues, *, everything: bool, keep_usage: bool = False
) -> Iterator[CleanupStep]:
    """In reverse: first nobody calls us any more, then we go, and what we wrote. Namespace and CRD only with
    `everything`.
    """
    yield from Uninstaller(writer=writer, namespace=values.namespace, keep_usage=keep_usage).take_back()
    for manifest in reversed(manifests):
        if manifest["kind"] in KEPT and not everything:
            yield CleanupStep(_told(manifest), "kept")
        elif manifest["kind"] not in cert_manager.CONFIGURATIONS:
            meta = manifest["metadata"]
            gone = objects.delete(writer, manifest["kind"], meta["name"], meta.get("namespace", ""))
            yield CleanupStep(_told(manifest), "removed" if gone else "was not there")


def _is_pair(manifest: Manifest) -> bool:
    return manifest["kind"] == "Secret" and bool(manifest["metadata"]["name"] == SECRET)


def _issued(writer: Writer, values: InstallValues) -> bool:
    secret = objects.get(writer.client, "Secret", SECRET, values.namespace)
    if secret is None or cert_manager.folder_of(secret) is not None:
        return False
    step = certs.next_step(certs.RotationState(store=None), called(WEBHOOK, values.namespace), now=clock.utc())
    assert isinstance(step, certs.WriteSecret)
    return _put(writer, cert_manager.filled(secret, step.folder))


def _trusted(writer: Writer, kind: str, values: InstallValues) -> bool:
    """The configuration is read before the Secret, as every replica does."""
    configuration = objects.get(writer.client, kind, CONFIGURATION)
    secret = objects.get(writer.client, "Secret", SECRET, values.namespace)
    folder = cert_manager.folder_of(secret or {})
    if configuration is None or folder is None or cert_manager.left_alone(configuration):
        return False
    if all(bundle == folder.bundle for bundle in cert_manager.ca_bundles(configuration)):
        return False
    return _put(writer, cert_manager.trusting(configuration, folder.bundle))


def _put(writer: Writer, document: objects.Whole) -> bool:
    try:
        objects.put(writer, document)
    except Conflict:
        return False  # a replica was quicker, and did the same
    return True


def _told(manifest: Manifest) -> str:
    return objects.object_ref(manifest["kind"], manifest["metadata"]["name"], manifest["metadata"].get("namespace", ""))
