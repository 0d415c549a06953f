"""Shares the webhook's serving certificate between its replicas, in a Secret and in both webhook configurations.

`trimtab.kube.certificate_rotation` carries out the steps; this module says for which objects. The Kubernetes client is
imported only if a Secret is configured, because it takes forty megabytes.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from trimtab.runtime import clock
from trimtab.runtime.graceful_shutdown import GracefulShutdown
from trimtab.runtime.log import Logger
from trimtab.runtime.settings import Settings

if TYPE_CHECKING:
    from trimtab.kube.certificate_rotation import CertificateRotator
    from trimtab.kube.client import Client

CONFIGURATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def build_rotator(settings: Settings, client: Client, log: Logger) -> CertificateRotator:
    """Returns the rotator for the Secret that the settings name."""
    from trimtab.kube.certificate_rotation import (
        OBSERVATIONS_TO_SETTLE,
        CertificateRotator,
        KubeSecretStore,
        certificate_names,
    )

    assert settings.certs_secret is not None
    store = KubeSecretStore(client, settings.certs_secret, settings.namespace, settings.configuration_name)
    return CertificateRotator(
        store,
        settings.certs_folder,
        certificate_names(settings.service_name, settings.namespace),
        log,
        clock.utc_now,
        looks=OBSERVATIONS_TO_SETTLE,
        kinds=CONFIGURATIONS,
    )


def wait_for_first_pair(settings: Settings, log: Logger) -> None:
    """Waits until the folder holds a pair; returns at once if no Secret is configured. Called before the process
    listens.

    Raises MissingKeyPair if no pair is available in time, NotConfigured if no cluster is configured.
    """
    if settings.certs_secret is None:
        return
    from trimtab.kube.certificate_rotation import step_until_pair
    from trimtab.kube.client import connect_to_cluster

    client = connect_to_cluster()
    try:
        step_until_pair(build_rotator(settings, client, log), log)
    finally:
        client.close()


def start_certificate_rotation(settings: Settings, shutdown: GracefulShutdown, log: Logger) -> threading.Thread | None:
    """Starts the rotation, and returns its thread, which ends with the process; None if no Secret is configured."""
    if settings.certs_secret is None:
        return None
    from trimtab.kube.certificate_rotation import MIN_INTERVAL_SECONDS
    from trimtab.kube.client import connect_to_cluster

    rotator = build_rotator(settings, connect_to_cluster(), log)
    thread = threading.Thread(
        target=rotator.run_until_stopped,
        args=(shutdown.wait_for_stop, max(settings.certs_check_interval_seconds, MIN_INTERVAL_SECONDS)),
        name="certificates",
        daemon=True,
    )
    thread.start()
    return thread
