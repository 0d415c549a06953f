"""Removes what changes pods without a process: compiled policies, their parameters, and the access to write those
parameters.

Users apply compiled policies themselves, so they are found by their label, whatever the mode of the installation. They
act even if no process of Trimtab runs: if they were left, they would still change pods after the uninstallation.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from trimtab.cli.install.cleanup_step import CleanupStep
from trimtab.cluster.request_parameters import PARAMETERS_LABEL
from trimtab.installation.parameter_access import GUARD_NAME, ROLE_NAME
from trimtab.kube import objects
from trimtab.kube.errors import NotAllowed, NotFound
from trimtab.kube.objects import Writer
from trimtab.kube.resources import LIST_SOURCES
from trimtab.policy.compiled_annotation import POLICY_LABEL

COMPILED_KINDS = (
    "MutatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicy",
)
"""The kinds of the objects that `trimtab policies compile` prints.

A validating policy that is enforced denies the pods that no webhook changes. If an uninstallation left such a policy,
every pod that it matches would be denied."""


def remove_compiled_policies(writer: Writer) -> Iterator[CleanupStep]:
    """Delete the bindings of compiled policies, then the policies, and yield a step for each.

    Raises any KubeFault except missing permissions, which are reported as a step."""
    for kind in COMPILED_KINDS:
        yield from _remove_selected(writer, kind, labelSelector=POLICY_LABEL)


def remove_parameters(writer: Writer) -> Iterator[CleanupStep]:
    """Delete the ConfigMaps `trimtab-requests` of all namespaces, the Roles to write them, and the policies that guard
    them.

    Yields a step for each object that existed."""
    yield from _remove_selected(writer, "ConfigMap", labelSelector=PARAMETERS_LABEL)
    for kind in ("RoleBinding", "Role"):
        yield from _remove_selected(writer, kind, fieldSelector=f"metadata.name={ROLE_NAME}")
    for kind in ("ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"):
        if objects.delete(writer, kind, GUARD_NAME):
            yield CleanupStep(objects.object_ref(kind, GUARD_NAME), "removed")


def _remove_selected(writer: Writer, kind: str, **selector: str) -> Iterator[CleanupStep]:
    try:
        stored = writer.client.get(LIST_SOURCES[kind].list_path, dict(selector), doing=f"list {kind}")
    except NotFound:
        return  # an API server before 1.36 has no such kind
    except NotAllowed as error:
        yield CleanupStep(kind, f"the objects cannot be read: {error}")
        return
    listed: dict[str, Any] = msgspec.json.decode(stored)
    for item in listed.get("items") or ():
        name, namespace = item["metadata"]["name"], item["metadata"].get("namespace", "")
        is_deleted = objects.delete(writer, kind, name, namespace)
        yield CleanupStep(objects.object_ref(kind, name, namespace), "removed" if is_deleted else "did not exist")
