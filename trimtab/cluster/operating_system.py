"""Decides whether a pod runs on Windows.

The security contexts of containers may show it. The pod of a review is decoded without them, because most decisions do
not need them; here they are read from the pod's own bytes.

Some of what holds on Linux does not hold there: no container has a guaranteed share of the cpu, nothing ends a
container when memory runs out, sandboxes are others, and the kubelet does not resize pods.
"""

from collections.abc import Iterable

import msgspec

from trimtab.cluster.api.meta import ApiObject, Labels, SelectorRequirement, decode_part, value_or
from trimtab.cluster.api.pod import (
    ContainerSecurityContext,
    NodeSelectorTerm,
    PodSpec,
    WindowsOptions,
    required_node_terms,
)
from trimtab.cluster.node import OS_LABELS
from trimtab.cluster.resources import all_containers

WINDOWS, LINUX = "windows", "linux"
_NO_LABELS: Labels = {}


def runs_on_windows(
    spec: PodSpec, class_selector: Labels = _NO_LABELS, more: Iterable[ContainerSecurityContext] = ()
) -> bool:
    """Returns whether the pod runs on Windows: `spec.os` says so, or it may only run on nodes with that system, or it
    has options that only Windows understands.

    class_selector: the node selector of the pod's RuntimeClass. The API server adds it to the pods that are created,
    but a template does not contain it. more: the security contexts of containers that are not in `spec`.
    """
    # `spec.os` is authoritative where it is set (KEP-2802); the selector is how older manifests choose the system.
    system = value_or(spec.os, None)
    if system is not None and system.name:
        return system.name == WINDOWS
    own_selector = value_or(spec.node_selector, _NO_LABELS)
    selected = {selector[key] for selector in (own_selector, class_selector) for key in OS_LABELS if key in selector}
    if selected:
        return WINDOWS in selected
    # Terms are ORed, so all of them must require Windows.
    terms = required_node_terms(spec)
    return (bool(terms) and all(map(_requires_windows, terms))) or _has_windows_options(spec, more)


def _requires_windows(term: NodeSelectorTerm) -> bool:
    # The expressions of one term are ANDed.
    return any(map(_is_windows_only, value_or(term.match_expressions, ())))


def _is_windows_only(requirement: SelectorRequirement) -> bool:
    if requirement.key not in OS_LABELS:
        return False
    values = set(requirement.values)
    return values == {WINDOWS} if requirement.operator == "In" else requirement.operator == "NotIn" and LINUX in values


def _has_windows_options(spec: PodSpec, more: Iterable[ContainerSecurityContext]) -> bool:
    contexts = (spec.security_context, *more, *(container.security_context for container in all_containers(spec)))
    return any(context is not None and _means_windows(context.windows_options) for context in contexts)


def _means_windows(options: WindowsOptions | None) -> bool:
    return options is not None and bool(
        options.host_process or options.gmsa_credential_spec_name or options.run_as_user_name
    )


_WINDOWS_FIELD = b'"windowsOptions"'


class _SecuredContainer(ApiObject, frozen=True, kw_only=True):
    security_context: ContainerSecurityContext | None = None


class _SecuredSpec(ApiObject, frozen=True, kw_only=True):
    containers: tuple[_SecuredContainer, ...] = ()
    init_containers: tuple[_SecuredContainer, ...] = ()


class _SecuredPod(ApiObject, frozen=True, kw_only=True):
    """A pod with the security contexts of its containers only."""

    spec: _SecuredSpec = _SecuredSpec()


_secured_decoder = msgspec.json.Decoder(_SecuredPod)


def mentions_windows_options(body: bytes) -> bool:
    """Returns whether a security context in the pod may have options for Windows. It costs next to nothing."""
    # From the end: CPython's `in` takes seven times as long for this word.
    return body.rfind(_WINDOWS_FIELD) >= 0


def read_security_contexts(body: bytes) -> tuple[ContainerSecurityContext, ...]:
    """Returns the security contexts of those containers that have one."""
    spec = decode_part(_secured_decoder, _SecuredPod, body).spec
    contexts = [container.security_context for container in (*spec.containers, *spec.init_containers)]
    return tuple([context for context in contexts if context is not None])
