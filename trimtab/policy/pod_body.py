"""Decodes parts of a pod's own bytes that most decisions do not need: environment variables, command lines and security
contexts of containers."""

from typing import TypeVar

import msgspec

from trimtab.cluster.api.meta import ApiObject
from trimtab.cluster.api.pod import Container, ContainerSecurityContext
from trimtab.cluster.snapshot import without_nulls

P = TypeVar("P")
_WINDOWS_FIELD = b'"windowsOptions"'


class _TextContainer(Container, frozen=True, kw_only=True):
    security_context: ContainerSecurityContext | None = msgspec.field(default=None, name="-")


class _TextSpec(ApiObject, frozen=True, kw_only=True):
    containers: tuple[_TextContainer, ...] = ()
    init_containers: tuple[_TextContainer, ...] = ()


class _TextPod(ApiObject, frozen=True, kw_only=True):
    """A pod with those fields only that may show a runtime."""

    spec: _TextSpec = _TextSpec()


class _SecuredContainer(ApiObject, frozen=True, kw_only=True):
    security_context: ContainerSecurityContext | None = None


class _SecuredSpec(ApiObject, frozen=True, kw_only=True):
    containers: tuple[_SecuredContainer, ...] = ()
    init_containers: tuple[_SecuredContainer, ...] = ()


class _SecuredPod(ApiObject, frozen=True, kw_only=True):
    """A pod with the security contexts of its containers only."""

    spec: _SecuredSpec = _SecuredSpec()


_text_decoder, _secured_decoder = msgspec.json.Decoder(_TextPod), msgspec.json.Decoder(_SecuredPod)


def read_containers(body: bytes) -> tuple[Container, ...]:
    """Returns the containers of the pod with what their environment variables and command lines show."""
    spec = _decode(_text_decoder, _TextPod, body).spec
    return (*spec.containers, *spec.init_containers)


def mentions_windows_options(body: bytes) -> bool:
    """Returns whether a security context in the pod may have options for Windows. It costs next to nothing."""
    return _WINDOWS_FIELD in body


def read_security_contexts(body: bytes) -> tuple[ContainerSecurityContext, ...]:
    """Returns the security contexts of those containers that have one."""
    spec = _decode(_secured_decoder, _SecuredPod, body).spec
    contexts = [container.security_context for container in (*spec.containers, *spec.init_containers)]
    return tuple([context for context in contexts if context is not None])


def _decode(decoder: msgspec.json.Decoder[P], shape: type[P], body: bytes) -> P:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError:
        # The fast decoder refuses nulls, which the API server treats as absent fields.
        return msgspec.convert(without_nulls(msgspec.json.decode(body)), shape)
