"""Rotates the signing key of the webhook or the compactor for a user's command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.processes import PROCESSES, secret_of
from trimtab.cluster.reason import Unreadable
from trimtab.inputs.command_faults import UsageError

if TYPE_CHECKING:
    from trimtab.cluster.signature import SigningKeys
    from trimtab.kube.client import Client

SIGNING_PROCESSES = tuple(process.name for process in PROCESSES if process.signs_annotations)
"""The names of the processes that sign annotations. The signatures are needed because other clients can write these
annotations as well."""


def rotate_signing_key(client: Client, namespace: str, process: str, *, confirmed: bool, force: bool) -> Iterator[str]:
    """Rotate the signing key if `confirmed` is set, and yield each step as text.

    Raises UsageError if there is no key. It is also raised if annotations or states in the cluster would no longer be
    authentic and `force` is not set. Raises any KubeFault if the API server refuses.
    """
    from trimtab.compactor.node_signatures import SECRET
    from trimtab.kube import objects as kube_objects
    from trimtab.kube import signing_keys
    from trimtab.kube.objects import Writer

    secret = kube_objects.get_plain(client, "Secret", secret_of(process), namespace)
    keys = signing_keys.keys_of(secret) if secret is not None else None
    key_secret = f"Secret {namespace}/{secret_of(process)}"
    if secret is None or keys is None:
        got = (
            "no Secret of this name"
            if secret is None
            else "no signing key, because the process itself writes the first one"
        )
        raise UsageError([ConfigError(file=key_secret, expected="a signing key", got=got)])
    signs_nodes = secret_of(process) == SECRET
    lost_signatures = tuple(_find_lost_signatures(client, namespace, secret, keys)) if signs_nodes else ()
    yield f"{key_secret}: a new key signs from now on, and signatures of the present key stay valid."
    if keys.previous is not None:
        yield "Signatures of the previous key are no longer valid."
    yield from (f"  no longer authentic after the rotation: {what}" for what in lost_signatures)
    if not confirmed:
        yield f"Nothing was changed. To rotate the key, run: trimtab certs rotate-signing-key {process} --yes"
        return
    if lost_signatures and not force:
        expected = "no signature of the key before the present one (a compactor that leads signs such objects again)"
        raise UsageError(
            [
                ConfigError(
                    file=key_secret,
                    expected=expected,
                    got=f"{', '.join(lost_signatures)}; with --force the key is rotated anyway",
                )
            ]
        )
    kube_objects.replace_plain(Writer(client=client), signing_keys.with_keys(secret, signing_keys.rotate_keys(keys)))
    yield f"{key_secret}: rotated"


def _find_lost_signatures(
    client: Client, namespace: str, secret: Mapping[str, Any], keys: SigningKeys
) -> Iterator[str]:
    """Yields the annotations and states that have a valid signature only by the compactor's previous key."""
    from trimtab.compactor.node_signatures import of_secret
    from trimtab.inputs.signatures import read_drain_annotations, read_states
    from trimtab.kube.objects import Writer

    signer = of_secret(Writer(client=client), namespace, secret)
    if keys.previous is None or signer is None:
        return
    yield from (
        f"the annotation on node {node}" for node in sorted(read_drain_annotations(client, namespace, signer).outdated)
    )
    later_signer = replace(signer, keys=keys.without_previous)
    later_states = read_states(client, namespace, later_signer)
    for pool, pool_state in sorted(read_states(client, namespace, signer).items()):
        if not isinstance(pool_state, Unreadable) and isinstance(later_states.get(pool), Unreadable):
            yield f"the state of pool {pool}"
