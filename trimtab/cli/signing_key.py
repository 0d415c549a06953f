"""The keys that the webhook and the compactor sign with: one of them rotated from outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trimtab.cli.main import UsageError
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.signature import secret_of

if TYPE_CHECKING:
    from trimtab.cluster.signature import SigningKeys
    from trimtab.kube.client import Client

PROCESSES = ("webhook", "compactor")
"""Who signs what others could write, too."""


def rotate(client: Client, namespace: str, process: str, *, confirmed: bool, force: bool) -> Iterator[str]:
    """What would be done, or was, in words. Raises Wrong where there is no key, or where a rotation would make what
    stands in the cluster not authentic; KubeFault where the cluster refused.
    """
    from trimtab.kube import objects as whole
    from trimtab.kube import signing_keys
    from trimtab.kube.objects import Writer

    secret = whole.get(client, "Secret", secret_of(process), namespace)
    keys = signing_keys.keys_of(secret) if secret is not None else None
    place = f"Secret {namespace}/{secret_of(process)}"
    if secret is None or keys is None:
        got = "no such Secret" if secret is None else "none: the process makes the first one itself"
        raise UsageError([ConfigError(file=place, expected="a signing key", got=got)])
    lost = tuple(_lost(client, namespace, secret, keys)) if process == "compactor" else ()
    yield f"{place}: a new key signs, and what the key of today signed still verifies."
    if keys.previous is not None:
        yield "What the key before it signed verifies no more."
    yield from (f"  not authentic any more: {what}" for what in lost)
    if not confirmed:
        yield f"Nothing was changed. To rotate: trimtab certs rotate-signing-key {process} --yes"
        return
    if lost and not force:
        expected = "nothing that only the key before the current one signed: a compactor that leads signs it anew"
        raise UsageError(
            [ConfigError(file=place, expected=expected, got=f"{', '.join(lost)}; --force rotates all the same")]
        )
    whole.put(Writer(client=client), signing_keys.with_keys(secret, signing_keys.rotated(keys)))
    yield f"{place}: rotated"


def _lost(client: Client, namespace: str, secret: Mapping[str, Any], keys: SigningKeys) -> Iterator[str]:
    """What the compactor's previous key signed and its current one did not."""
    from trimtab.cli.doctor.check_signatures import notes_of, states_of
    from trimtab.compactor.node_signatures import of_secret
    from trimtab.kube.objects import Writer

    signing = of_secret(Writer(client=client), namespace, secret)
    if keys.previous is None or signing is None:
        return
    yield from (f"the annotation on node {node}" for node in sorted(notes_of(client, namespace, signing).outdated))
    later = replace(signing, keys=keys.without_previous)
    after = states_of(client, namespace, later)
    for pool, memory in sorted(states_of(client, namespace, signing).items()):
        if not isinstance(memory, Unreadable) and isinstance(after.get(pool), Unreadable):
            yield f"the state of pool {pool}"
