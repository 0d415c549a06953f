"""Applies manifests by server-side apply, and removes them; issues the certificate before the objects that need it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import certs
from trimtab.cli.install.cleanup import Uninstaller, clear_renamed_taints
from trimtab.cli.install.cleanup_step import CleanupStep
from trimtab.cli.install.compiled_removal import remove_compiled_policies, remove_parameters
from trimtab.installation.manifests import KEPT
from trimtab.installation.names import (
    CERTIFICATE_SECRET,
    CONFIGURATION_NAME,
    POLICIES_MODE,
    WEBHOOK_NAME,
    InstallValues,
    Manifest,
)
from trimtab.installation.vpa_status_access import ROLE_NAME as VPA_STATUS_ROLE
from trimtab.kube import certificate_rotation, objects
from trimtab.kube.certificate_rotation import certificate_names
from trimtab.kube.client import Client
from trimtab.kube.errors import Conflict, NotAllowed
from trimtab.kube.objects import Writer
from trimtab.runtime import clock
from webhook import cert_manager

MANAGER = "trimtab-install"
"""The field manager of server-side apply. Fields that the processes write (the certificate, the caBundle) have other
managers, and are not changed."""


def find_other_installation(client: Client, namespace: str) -> str | None:
    """Returns the namespace of another installation of Trimtab that the API servers of this cluster call.

    Returns None if there is none, or if the user may not read the webhook configurations. The configurations are
    cluster-scoped: changing or removing them would disconnect that other installation.
    """
    for kind in cert_manager.CONFIGURATIONS:
        try:
            configuration = objects.get_plain(client, kind, CONFIGURATION_NAME)
        except NotAllowed:
            continue
        other_namespaces = certificate_rotation.service_namespaces(configuration or {}) - {namespace}
        if other_namespaces:
            return min(other_namespaces)
    return None


def has_webhook(client: Client) -> bool:
    """Returns whether this cluster has a webhook configuration of Trimtab, as far as the user may read them. Raises any
    other KubeFault."""
    for kind in cert_manager.CONFIGURATIONS:
        try:
            if objects.get_plain(client, kind, CONFIGURATION_NAME) is not None:
                return True
        except NotAllowed:
            continue
    return False


def apply_manifests(writer: Writer, manifests: Sequence[Manifest], values: InstallValues) -> Iterator[CleanupStep]:
    """Apply the manifests in order, and yield a step for each.

    The first certificate is issued as soon as its Secret exists, the caBundle is written as soon as its configuration
    exists. Raises any KubeFault; earlier manifests stay applied, and another call continues from there.
    """
    for manifest in manifests:
        objects.apply(replace(writer, manager=MANAGER), manifest)
        yield CleanupStep(_object_ref(manifest), "applied")
        # A dry run has not stored the Secret and the configurations, so there is nothing to fill.
        if values.cert_manager or writer.dry_run:
            continue
        if _is_certificate_secret(manifest) and _issue_certificate(writer, values):
            yield CleanupStep(_object_ref(manifest), "issued")
        if manifest["kind"] in cert_manager.CONFIGURATIONS and _write_ca_bundle(writer, manifest["kind"], values):
            yield CleanupStep(_object_ref(manifest), "trusted")
    yield from clear_renamed_taints(writer, values.namespace)


def leave_mode(writer: Writer, values: InstallValues) -> Iterator[CleanupStep]:
    """Remove the objects that the installation's mode and options do not need, and yield a step for each. Raises any
    KubeFault.

    Without `--vpa-recommender` the recommender must no longer be able to write the status of VPAs."""
    for kind in () if values.writes_vpa_status else ("ClusterRoleBinding", "ClusterRole"):
        if objects.delete(writer, kind, VPA_STATUS_ROLE):
            yield CleanupStep(objects.object_ref(kind, VPA_STATUS_ROLE), "removed")
    if values.mode == POLICIES_MODE:
        kind = "MutatingWebhookConfiguration"
        is_deleted = objects.delete(writer, kind, CONFIGURATION_NAME, "")
        yield CleanupStep(
            objects.object_ref(kind, CONFIGURATION_NAME, ""), "removed" if is_deleted else "did not exist"
        )


def remove_manifests(
    writer: Writer, manifests: Sequence[Manifest], values: InstallValues, *, everything: bool, keep_usage: bool = False
) -> Iterator[CleanupStep]:
    """Remove the manifests in reverse order, and yield a step for each; namespace and CRD only with `everything`.

    First compiled policies are removed and API servers stop calling the webhook. Then the processes and what they wrote
    are removed; last the parameters, when no process writes them any more.
    """
    yield from remove_compiled_policies(writer)
    yield from Uninstaller(writer=writer, namespace=values.namespace, keep_usage=keep_usage).remove_all()
    yield from remove_parameters(writer)
    for manifest in reversed(manifests):
        if manifest["kind"] in KEPT and not everything:
            yield CleanupStep(_object_ref(manifest), "kept")
        elif manifest["kind"] not in (*cert_manager.CONFIGURATIONS, "APIService"):
            metadata = manifest["metadata"]
            is_deleted = objects.delete(writer, manifest["kind"], metadata["name"], metadata.get("namespace", ""))
            yield CleanupStep(_object_ref(manifest), describe_removal(manifest["kind"], is_deleted=is_deleted))


def describe_removal(kind: str, *, is_deleted: bool) -> str:
    """Returns the outcome of a deletion as text.

    The API server first deletes all objects in a namespace; until the namespace is gone, nothing can be installed into
    it.
    """
    if not is_deleted:
        return "did not exist"
    return (
        "the object is being deleted; wait until the deletion is complete before you install Trimtab again"
        if kind == "Namespace"
        else "removed"
    )


def _is_certificate_secret(manifest: Manifest) -> bool:
    return manifest["kind"] == "Secret" and bool(manifest["metadata"]["name"] == CERTIFICATE_SECRET)


def _issue_certificate(writer: Writer, values: InstallValues) -> bool:
    secret = objects.get_plain(writer.client, "Secret", CERTIFICATE_SECRET, values.namespace)
    if secret is None or certificate_rotation.files_in_secret(secret) is not None:
        return False
    # Without a stored certificate the first step of every rotation is to write a new one.
    step = certs.next_step(
        certs.RotationState(store=None), certificate_names(WEBHOOK_NAME, values.namespace), now=clock.utc_now()
    )
    assert isinstance(step, certs.WriteSecret)
    return _put_if_unchanged(writer, certificate_rotation.with_files(secret, step.folder))


def _write_ca_bundle(writer: Writer, kind: str, values: InstallValues) -> bool:
    """Write the certificate's authority into the caBundle of the configuration; return whether the configuration
    changed."""
    # The configuration is read before the Secret, as every replica does.
    configuration = objects.get_plain(writer.client, kind, CONFIGURATION_NAME)
    secret = objects.get_plain(writer.client, "Secret", CERTIFICATE_SECRET, values.namespace)
    folder = certificate_rotation.files_in_secret(secret or {})
    if configuration is None or folder is None or certificate_rotation.is_managed_elsewhere(configuration):
        return False
    if all(bundle == folder.bundle for bundle in certificate_rotation.ca_bundles(configuration)):
        return False
    return _put_if_unchanged(writer, certificate_rotation.with_ca_bundle(configuration, folder.bundle))


def _put_if_unchanged(writer: Writer, document: objects.Whole) -> bool:
    try:
        objects.replace_plain(writer, document)
    except Conflict:
        return False  # a replica wrote the same first
    return True


def _object_ref(manifest: Manifest) -> str:
    return objects.object_ref(manifest["kind"], manifest["metadata"]["name"], manifest["metadata"].get("namespace", ""))
