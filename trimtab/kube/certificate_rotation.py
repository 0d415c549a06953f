"""Shares one serving certificate between all replicas: issues and rotates the certificate in a Secret, and writes the
caBundle.

`certs.next_step` decides the next step; this module reads the cluster and carries the step out. All replicas do so at
the same time: if two write to one object, the API server rejects one write, and that replica reads again. A new
certificate authority is in every caBundle before a certificate that it has signed is served. The caBundles are those of
webhook configurations, or of an APIService.
"""

from __future__ import annotations

import base64
import binascii
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import certs
from trimtab.kube.client import Client
from trimtab.kube.errors import Conflict, KubeFault
from trimtab.kube.objects import Writer, get_plain, replace_plain
from trimtab.runtime import clock
from trimtab.runtime.files import MissingKeyPair
from trimtab.runtime.log import Logger

KubeObject = dict[str, Any]

API_SERVICE = "APIService"

INJECTION_ANNOTATIONS = ("cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret")
"""Annotations of cert-manager. It writes the caBundle of objects that have one of them, and Trimtab must not write the
same field."""

_CA, _CA_KEY, _CERTIFICATE, _KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"


def files_in_secret(secret: Mapping[str, Any]) -> certs.CertificateFiles | None:
    """Returns the certificate files in the Secret, or None if it holds no key pair. Invalid base64 counts as absent."""
    data = {name: _decode_base64(text) for name, text in (secret.get("data") or {}).items()}
    if not data.get(_CERTIFICATE) or not data.get(_KEY):
        return None
    return certs.CertificateFiles(
        bundle=data.get(_CA, b""),
        pair=certs.KeyPair(certificate=data[_CERTIFICATE], key=data[_KEY]),
        authority_key=data.get(_CA_KEY) or None,
    )


def with_files(secret: Mapping[str, Any], certificates: certs.CertificateFiles) -> KubeObject:
    """Returns the Secret with these files in its data."""
    files = {
        _CA: certificates.bundle,
        _CA_KEY: certificates.authority_key or b"",
        _CERTIFICATE: certificates.pair.certificate,
        _KEY: certificates.pair.key,
    }
    data = {name: base64.b64encode(content).decode() for name, content in files.items()}
    return {**secret, "data": {**(secret.get("data") or {}), **data}}


def is_managed_elsewhere(configuration: Mapping[str, Any]) -> bool:
    """Returns whether cert-manager writes the caBundle of this webhook configuration or APIService."""
    annotations = configuration["metadata"].get("annotations") or {}
    return any(annotations.get(name) for name in INJECTION_ANNOTATIONS)


def ca_bundles(configuration: Mapping[str, Any]) -> tuple[bytes, ...]:
    """Returns the caBundle of each webhook in a configuration, or of an APIService; empty bytes if there is none."""
    if configuration.get("kind") == API_SERVICE:
        return (_decode_base64((configuration.get("spec") or {}).get("caBundle") or ""),)
    return tuple(
        _decode_base64(_client_config(webhook).get("caBundle") or "") for webhook in configuration.get("webhooks") or ()
    )


def service_namespaces(configuration: Mapping[str, Any]) -> frozenset[str]:
    """Returns the namespaces of the Services that the configuration's webhooks call; empty if they are called by
    URL."""
    services = [_client_config(webhook).get("service") for webhook in configuration.get("webhooks") or ()]
    return frozenset(service["namespace"] for service in services if service)


def with_ca_bundle(configuration: Mapping[str, Any], bundle: bytes) -> KubeObject:
    """Returns the webhook configuration with this caBundle in all its webhooks, or the APIService with this
    caBundle."""
    text = base64.b64encode(bundle).decode()
    if configuration.get("kind") == API_SERVICE:
        return {**configuration, "spec": {**configuration["spec"], "caBundle": text}}
    webhooks = [
        {**webhook, "clientConfig": {**_client_config(webhook), "caBundle": text}}
        for webhook in configuration.get("webhooks") or ()
    ]
    return {**configuration, "webhooks": webhooks}


def _client_config(webhook: Mapping[str, Any]) -> Mapping[str, Any]:
    config: Mapping[str, Any] = webhook.get("clientConfig") or {}
    return config


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


OBSERVATIONS_TO_SETTLE = 3
"""A bundle must have been observed in every caBundle this many times in a row before its authority signs
certificates."""


class SecretStore(Protocol):
    """Reads and writes the objects of a certificate rotation by their kind. The implementation knows their names."""

    def get_object(self, kind: str) -> KubeObject | None:
        """Returns the object, or None if it does not exist. Raises any KubeFault."""

    def put_object(self, document: KubeObject) -> None:
        """Writes the object. Raises Conflict if it has changed since it was read, and otherwise any KubeFault."""


class NoSecret(KubeFault):
    """Raised if the Secret does not exist. Trimtab does not create it, because a role that may create one Secret may
    create any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretObservation:
    """The objects that one replica has read. `places`, the objects with a caBundle, were read before `secret`."""

    places: tuple[KubeObject, ...]
    secret: KubeObject


class CertificateRotator:
    """One replica's part in the rotation. Only one thread may call `run_step`."""

    def __init__(
        self,
        store: SecretStore,
        folder: Path,
        names: Sequence[str],
        log: Logger,
        now: Callable[[], datetime],
        *,
        looks: int,
        kinds: Sequence[str],
    ) -> None:
        """`folder`: the folder from which this replica serves. `looks`: how often a bundle must be observed before it
        is settled. `kinds`: the kinds of the objects whose caBundle API servers read."""
        self._store, self._folder, self._names, self._kinds = store, folder, tuple(names), tuple(kinds)
        self._log, self._now, self._observations_required = log, now, looks
        self._observed_bundle: tuple[bytes, int] = (b"", 0)
        self._last_waiting: tuple[certs.Problem, ...] = ()

    def run_step(self) -> bool:
        """Reads the objects, copies the shared key pair to this replica's folder if that is safe, and carries out one
        step.

        Returns True if something was written; the caller should then call again at once. Raises KubeFault if the step
        was not possible; the next call begins anew.
        """
        return self.carry_out_step(self.read_secret(self.managed_configurations()))

    def managed_configurations(self) -> tuple[KubeObject, ...]:
        """Returns the webhook configurations, or the APIService, whose caBundle Trimtab writes."""
        configurations = (self._store.get_object(kind) for kind in self._kinds)
        return tuple(
            configuration
            for configuration in configurations
            if configuration is not None and not is_managed_elsewhere(configuration)
        )

    def read_secret(self, places: tuple[KubeObject, ...]) -> SecretObservation:
        """Reads the Secret, after the objects with a caBundle (`places`) were read."""
        secret = self._store.get_object("Secret")
        if secret is None:
            raise NoSecret("the Secret for the certificate does not exist; `trimtab install` creates it")
        return SecretObservation(places=places, secret=secret)

    def carry_out_step(self, observation: SecretObservation) -> bool:
        """Carries out the next step. Returns True if an object was written, by this replica or another one."""
        store, serving = files_in_secret(observation.secret), self.read_serving_files()
        bundles = tuple(bundle for place in observation.places for bundle in ca_bundles(place))
        self._take_over(store, serving, bundles)
        state = certs.RotationState(
            store=store, places=bundles, settled=self._is_settled(store, bundles), serving=serving
        )
        try:
            return self._carry_out(certs.next_step(state, self._names, now=self._now()), observation)
        except Conflict:
            return True

    def read_serving_files(self) -> certs.CertificateFiles | None:
        """Returns the certificate files in this replica's folder, or None if they contain no usable key pair."""
        try:
            files = certs.read_folder(self._folder)
        except certs.CertsError:
            return None
        return files if certs.is_usable(files, self._now()) else None

    def _take_over(
        self,
        certificates: certs.CertificateFiles | None,
        serving: certs.CertificateFiles | None,
        bundles: tuple[bytes, ...],
    ) -> None:
        """Writes the shared key pair to this replica's folder, as soon as every API server that may call this replica
        trusts it."""
        if (
            certificates is None
            or not certs.is_usable(certificates, self._now())
            or not certs.may_serve(certificates, bundles)
        ):
            return
        wanted = replace(certificates, authority_key=None)
        if serving != wanted:
            certs.write_folder(self._folder, wanted)
            self._log.info("certificate taken over", until=str(certificates.pair.read_leaf().not_valid_after_utc))

    def _is_settled(self, certificates: certs.CertificateFiles | None, bundles: tuple[bytes, ...]) -> bool:
        if certificates is None or any(bundle != certificates.bundle for bundle in bundles):
            self._observed_bundle = (b"", 0)
            return False
        bundle, looks = self._observed_bundle
        self._observed_bundle = (certificates.bundle, looks + 1 if bundle == certificates.bundle else 1)
        return self._observed_bundle[1] > self._observations_required

    def _carry_out(self, step: certs.RotationStep, observation: SecretObservation) -> bool:
        match step:
            case certs.WriteSecret(folder, reasons):
                self._store.put_object(with_files(observation.secret, folder))
                self._log.info("certificate changed in the Secret", why="; ".join(map(str, reasons)))
            case certs.PatchCABundle(bundle):
                configuration = next(
                    configuration
                    for configuration in observation.places
                    if any(b != bundle for b in ca_bundles(configuration))
                )
                self._store.put_object(with_ca_bundle(configuration, bundle))
                self._log.info("caBundle written", into=f"{configuration['kind']} {configuration['metadata']['name']}")
            case certs.WaitUntil(waiting):
                if waiting != self._last_waiting:
                    self._log.info(
                        "the new certificate is not served yet, because its authority is not trusted everywhere",
                        why="; ".join(map(str, waiting)),
                    )
                self._last_waiting = waiting
                return False
        return True

    def run_until_stopped(self, stop: Callable[[float], bool], every: float) -> None:
        """Runs steps until `stop`, which waits the given number of seconds, returns True. An error is logged when it
        begins, changes or ends."""
        last_error, immediate_steps = "", 0
        while True:
            try:
                is_changed, error_text = self.run_step(), ""
            except (KubeFault, certs.CertsError) as error:
                is_changed, error_text = False, str(error)
            except Exception as error:  # noqa: BLE001  a bug must not end the renewal silently, weeks before the certificate expires
                is_changed, error_text = False, f"{type(error).__name__}: {error}"
            if error_text and error_text != last_error:
                self._log.warning("certificates cannot be renewed", why=error_text)
            last_error = error_text
            # Another writer of the same objects must not cause requests without a pause.
            immediate_steps = immediate_steps + 1 if is_changed else 0
            if stop(0.0 if 0 < immediate_steps <= _MAX_IMMEDIATE_STEPS else every):
                return


_MAX_IMMEDIATE_STEPS = 8
"""The maximum number of steps without a pause; a whole rotation needs five."""


FIRST_PAIR_SECONDS = 60.0
"""How many seconds to wait for the first key pair. After that the process exits, so that the kubelet restarts it and
the problem becomes visible."""

MIN_INTERVAL_SECONDS = 0.1
"""The minimum number of seconds between steps, whatever is configured, so that requests are never sent without a
pause."""


@dataclass(frozen=True, slots=True)
class KubeSecretStore:
    """Implements `SecretStore` with a real cluster."""

    client: Client
    secret: str
    namespace: str
    configuration: str

    def get_object(self, kind: str) -> KubeObject | None:
        """Returns the Secret, or the object of this kind that has the caBundle; None if it does not exist."""
        name, namespace = (self.secret, self.namespace) if kind == "Secret" else (self.configuration, "")
        return get_plain(self.client, kind, name, namespace)

    def put_object(self, document: KubeObject) -> None:
        """Writes the object under Trimtab's field manager. Raises Conflict if the object has changed since it was
        read."""
        replace_plain(Writer(client=self.client), document)


def certificate_names(service: str, namespace: str) -> tuple[str, ...]:
    """Returns the names that the certificate must contain. API servers verify the first one, NAME.NAMESPACE.svc."""
    full = f"{service}.{namespace}.svc"
    return (full, f"{full}.cluster.local", f"{service}.{namespace}")


def step_until_pair(rotator: CertificateRotator, log: Logger, patience: float = FIRST_PAIR_SECONDS) -> None:
    """Runs steps until there is a key pair to serve. Raises MissingKeyPair if that takes more than `patience`
    seconds."""
    deadline, last_error, pause = clock.elapsed_seconds() + patience, "", threading.Event()
    while rotator.read_serving_files() is None:
        try:
            is_changed, error_text = rotator.run_step(), ""
        except KubeFault as error:
            is_changed, error_text = False, str(error)
        if error_text and error_text != last_error:
            log.warning("there is no certificate yet", why=error_text)
        last_error = error_text or last_error
        if clock.elapsed_seconds() > deadline:
            raise MissingKeyPair(
                f"there is no certificate after {patience:g} s: "
                f"{last_error or 'API servers do not trust the new certificate yet'}"
            )
        pause.wait(0.0 if is_changed else 1.0)
