"""The Secret that all replicas share, and the webhook configurations that tell API servers whom to trust, as values.

Keep the pair that all replicas share: serve it, renew it, and have API servers trust it before it is served.

What to do is `certs.next_step`; here it is looked at and done. Any number of replicas do so at once: of two that write
the same object one is refused, and looks again.

The keeper in a process: its door to the cluster, a pair before anything listens, its thread.

The cluster's client is imported only by who has a Secret to keep: it is forty megabytes.
"""

from __future__ import annotations

import base64
import binascii
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import certs
from trimtab.kube.errors import Conflict, KubeFault
from trimtab.runtime import clock
from trimtab.runtime.files import MissingKeyPair
from trimtab.runtime.graceful_shutdown import GracefulShutdown
from trimtab.runtime.log import Logger
from trimtab.runtime.settings import Settings

if TYPE_CHECKING:
    from trimtab.kube.client import Client


KubeObject = dict[str, Any]

CONFIGURATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")

INJECTED = ("cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret")
"""cert-manager's annotations: it keeps the caBundle of a configuration that carries one, and two must not."""

_CA, _CA_KEY, _CERTIFICATE, _KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"


def folder_of(secret: Mapping[str, Any]) -> certs.CertificateFiles | None:
    """What the Secret holds; None while it holds no pair at all. What is no base64 counts as absent."""
    data = {name: _decoded(text) for name, text in (secret.get("data") or {}).items()}
    if not data.get(_CERTIFICATE) or not data.get(_KEY):
        return None
    return certs.CertificateFiles(
        bundle=data.get(_CA, b""),
        pair=certs.KeyPair(certificate=data[_CERTIFICATE], key=data[_KEY]),
        authority_key=data.get(_CA_KEY) or None,
    )


def filled(secret: Mapping[str, Any], folder: certs.CertificateFiles) -> KubeObject:
    """The same Secret with this in it."""
    held = {
        _CA: folder.bundle,
        _CA_KEY: folder.authority_key or b"",
        _CERTIFICATE: folder.pair.certificate,
        _KEY: folder.pair.key,
    }
    data = {name: base64.b64encode(content).decode() for name, content in held.items()}
    return {**secret, "data": {**(secret.get("data") or {}), **data}}


def left_alone(configuration: Mapping[str, Any]) -> bool:
    """Does somebody else keep this configuration's caBundle?"""
    annotations = configuration["metadata"].get("annotations") or {}
    return any(annotations.get(name) for name in INJECTED)


def ca_bundles(configuration: Mapping[str, Any]) -> tuple[bytes, ...]:
    """The caBundle of each of its webhooks; empty bytes where there is none."""
    return tuple(_decoded(_client(found).get("caBundle") or "") for found in configuration.get("webhooks") or ())


def namespaces(configuration: Mapping[str, Any]) -> frozenset[str]:
    """Of the Services that its webhooks call; none where they are called by a URL."""
    services = [_client(found).get("service") for found in configuration.get("webhooks") or ()]
    return frozenset(service["namespace"] for service in services if service)


def trusting(configuration: Mapping[str, Any], bundle: bytes) -> KubeObject:
    """The same configuration with this caBundle in all its webhooks."""
    text = base64.b64encode(bundle).decode()
    webhooks = [
        {**found, "clientConfig": {**_client(found), "caBundle": text}} for found in configuration.get("webhooks") or ()
    ]
    return {**configuration, "webhooks": webhooks}


def _client(webhook: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = webhook.get("clientConfig") or {}
    return found


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


LOOKS_TO_SETTLE = 3
"""Looks that must have found a bundle in every place before its authority signs."""


class SecretStore(Protocol):
    """The objects the keeper reads and writes, by kind; the names are the door's business."""

    def get(self, kind: str) -> KubeObject | None:
        """None where there is none. Raises any KubeFault."""

    def put(self, document: KubeObject) -> None:
        """Raises Conflict where somebody wrote it since it was read, else any KubeFault."""


class NoSecret(KubeFault):
    """The Secret is not there. It is not made here: whoever may create one Secret may create any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretObservation:
    """What one replica has seen; `places` was looked at before `secret`."""

    places: tuple[KubeObject, ...]
    secret: KubeObject


class CertificateRotator:
    """One replica's part. `step` from one thread."""

    def __init__(
        self,
        door: SecretStore,
        folder: Path,
        names: Sequence[str],
        log: Logger,
        now: Callable[[], datetime],
        *,
        looks: int,
    ) -> None:
        """`folder` is where this replica serves from; `looks`: how many make a bundle settled."""
        self._door, self._folder, self._names = door, folder, tuple(names)
        self._log, self._now, self._looks = log, now, looks
        self._found: tuple[bytes, int] = (b"", 0)
        self._waiting: tuple[certs.Problem, ...] = ()

    def step(self) -> bool:
        """Look, serve what may be served, do one thing. True where something was done: look again at once.

        Raises KubeFault where that was impossible; the next step begins anew.
        """
        return self.act(self.look(self.places()))

    def places(self) -> tuple[KubeObject, ...]:
        """The configurations whose caBundle is ours to keep."""
        found = (self._door.get(kind) for kind in CONFIGURATIONS)
        return tuple(place for place in found if place is not None and not left_alone(place))

    def look(self, places: tuple[KubeObject, ...]) -> SecretObservation:
        """The Secret, beside what was seen before it."""
        secret = self._door.get("Secret")
        if secret is None:
            raise NoSecret("the Secret for the pair is not there; `trimtab install` makes it")
        return SecretObservation(places=places, secret=secret)

    def act(self, look: SecretObservation) -> bool:
        """True where something was written, or somebody else was quicker."""
        store, serving = folder_of(look.secret), self.serving()
        bundles = tuple(bundle for place in look.places for bundle in ca_bundles(place))
        self._serve(store, serving, bundles)
        seen = certs.RotationState(store=store, places=bundles, settled=self._settled(store, bundles), serving=serving)
        try:
            return self._do(certs.next_step(seen, self._names, now=self._now()), look)
        except Conflict:
            return True

    def serving(self) -> certs.CertificateFiles | None:
        """What stands in our folder; None where no whole pair does."""
        try:
            found = certs.read(self._folder)
        except certs.CertsError:
            return None
        return found if certs.is_usable(found, self._now()) else None

    def _serve(
        self, store: certs.CertificateFiles | None, serving: certs.CertificateFiles | None, bundles: tuple[bytes, ...]
    ) -> None:
        """Take the shared pair over, once everybody who may call trusts it."""
        if store is None or not certs.is_usable(store, self._now()) or not certs.may_serve(store, bundles):
            return
        wanted = replace(store, authority_key=None)
        if serving != wanted:
            certs.write(self._folder, wanted)
            self._log.info("certificate taken over", until=str(store.pair.leaf().not_valid_after_utc))

    def _settled(self, store: certs.CertificateFiles | None, bundles: tuple[bytes, ...]) -> bool:
        if store is None or any(bundle != store.bundle for bundle in bundles):
            self._found = (b"", 0)
            return False
        bundle, looks = self._found
        self._found = (store.bundle, looks + 1 if bundle == store.bundle else 1)
        return self._found[1] > self._looks

    def _do(self, step: certs.RotationStep, look: SecretObservation) -> bool:
        match step:
            case certs.WriteSecret(folder, reasons):
                self._door.put(filled(look.secret, folder))
                self._log.info("certificate changed in the Secret", why="; ".join(map(str, reasons)))
            case certs.PatchCABundle(bundle):
                place = next(place for place in look.places if any(b != bundle for b in ca_bundles(place)))
                self._door.put(trusting(place, bundle))
                self._log.info("caBundle written", into=f"{place['kind']} {place['metadata']['name']}")
            case certs.WaitUntil(waiting):
                if waiting != self._waiting:
                    self._log.info(
                        "certificate waits for its new authority to be known", why="; ".join(map(str, waiting))
                    )
                self._waiting = waiting
                return False
        return True

    def run(self, stop: Callable[[float], bool], every: float) -> None:
        """Steps until `stop` (which waits so many seconds) says so; trouble is told when it begins, changes or ends."""
        trouble, hurried = "", 0
        while True:
            try:
                again, now = self.step(), ""
            except (KubeFault, certs.CertsError) as error:
                again, now = False, str(error)
            except Exception as error:  # noqa: BLE001  a bug must not end the renewal in silence, weeks before it shows
                again, now = False, f"{type(error).__name__}: {error}"
            if now and now != trouble:
                self._log.warning("certificates cannot be kept", why=now)
            trouble = now
            # Somebody who writes against us must not make us ask without a pause.
            hurried = hurried + 1 if again else 0
            if stop(0.0 if 0 < hurried <= _MOST_HURRIED else every):
                return


_MOST_HURRIED = 8
"""Looks without a pause: a whole rotation needs five."""


_PATIENCE = 60.0
"""Seconds for the first pair; then the kubelet may start us again, and tells that it had to."""

_SHORTEST = 0.1
"""Seconds between looks, whatever was set: zero would ask without a pause."""


@dataclass(frozen=True, slots=True)
class KubeSecretStore:
    """A `SecretStore` to a real cluster."""

    client: Client
    secret: str
    namespace: str
    configuration: str

    def get(self, kind: str) -> KubeObject | None:
        """The Secret, or the configuration of this kind."""
        from trimtab.kube import objects as whole

        name, namespace = (self.secret, self.namespace) if kind == "Secret" else (self.configuration, "")
        return whole.get(self.client, kind, name, namespace)

    def put(self, document: KubeObject) -> None:
        """Stored under our name; Conflict where it changed since it was read."""
        from trimtab.kube import objects as whole
        from trimtab.kube.objects import Writer

        whole.put(Writer(client=self.client), document)


def called(service: str, namespace: str) -> tuple[str, ...]:
    """The names a pair has to carry. API servers check the first, NAME.NAMESPACE.svc."""
    full = f"{service}.{namespace}.svc"
    return (full, f"{full}.cluster.local", f"{service}.{namespace}")


def keeper(settings: Settings, client: Client, log: Logger) -> CertificateRotator:
    """For the Secret that the settings name."""
    assert settings.certs_secret is not None
    door = KubeSecretStore(client, settings.certs_secret, settings.namespace, settings.configuration_name)
    return CertificateRotator(
        door,
        settings.certs_folder,
        called(settings.service_name, settings.namespace),
        log,
        clock.utc,
        looks=LOOKS_TO_SETTLE,
    )


def first_pair(settings: Settings, log: Logger) -> None:
    """Have a pair in the folder, before anything listens; at once where no Secret is named.

    Raises NoPair where none could be had, NotConfigured where no cluster is known.
    """
    if settings.certs_secret is None:
        return
    from trimtab.kube.client import connect

    client = connect()
    try:
        wait_for_a_pair(keeper(settings, client, log), log)
    finally:
        client.close()


def wait_for_a_pair(keeping: CertificateRotator, log: Logger, patience: float = _PATIENCE) -> None:
    """Steps until something can be served. Raises NoPair where that takes more than `patience` seconds."""
    until, trouble, pause = clock.elapsed() + patience, "", threading.Event()
    while keeping.serving() is None:
        try:
            again, now = keeping.step(), ""
        except KubeFault as error:
            again, now = False, str(error)
        if now and now != trouble:
            log.warning("no certificate yet", why=now)
        trouble = now or trouble
        if clock.elapsed() > until:
            raise MissingKeyPair(
                f"no certificate within {patience:g} s: {trouble or 'API servers do not trust it yet'}"
            )
        pause.wait(0.0 if again else 1.0)


def start_certificate_rotation(settings: Settings, stop: GracefulShutdown, log: Logger) -> threading.Thread | None:
    """Go on keeping it in a thread until the process stops; None where no Secret is named."""
    if settings.certs_secret is None:
        return None
    from trimtab.kube.client import connect

    keeping = keeper(settings, connect(), log)
    thread = threading.Thread(
        target=keeping.run,
        args=(stop.wait, max(settings.certs_check_interval_seconds, _SHORTEST)),
        name="certificates",
        daemon=True,
    )
    thread.start()
    return thread
