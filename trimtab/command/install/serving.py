"""The webhook's process in the cluster: two replicas that never leave together, with no right they don't use."""

from collections.abc import Iterator

from trimtab.command.install.names import CONFIGURATION, SECRET, WEBHOOK, Manifest, labels, manifest
from trimtab.command.install.pods import deployment, probe, variables
from trimtab.command.install.values import Values
from trimtab.runtime.settings import Settings

CERTS = "/var/run/trimtab/certs"
CALLERS = "/var/run/trimtab/callers"
"""Where `TRIMTAB_CLIENT_CA` may lead: authorities that sign API servers' own certificates."""
GRACE = 40
"""Seconds from the stop signal to the kill: longer than TRIMTAB_GRACEFUL_TIMEOUT, or the stop is cut short."""


def serving(values: Values) -> Iterator[Manifest]:
    """The pair's Secret first: whoever serves needs it."""
    if values.cert_manager:
        yield from _issued(values)
    else:
        # Without data: the replicas fill it, and whoever applies this again takes nothing away.
        yield manifest("v1", "Secret", SECRET, values, component="webhook", type="Opaque")
    yield _service(values)
    yield _deployment(values)


def _issued(values: Values) -> Iterator[Manifest]:
    name = f"{WEBHOOK}.{values.namespace}.svc"
    yield manifest("cert-manager.io/v1", "Issuer", WEBHOOK, values, component="webhook", spec={"selfSigned": {}})
    spec = {
        "secretName": SECRET, "dnsNames": [name, f"{name}.cluster.local"], "privateKey": {"algorithm": "ECDSA"},
        "issuerRef": {"kind": "Issuer", "name": WEBHOOK},
    }  # fmt: skip
    yield manifest("cert-manager.io/v1", "Certificate", WEBHOOK, values, component="webhook", spec=spec)


def _service(values: Values) -> Manifest:
    port = {"name": "https", "port": values.service_port, "targetPort": "https", "protocol": "TCP"}
    spec = {"selector": labels("webhook"), "ports": [port]}
    return manifest("v1", "Service", WEBHOOK, values, component="webhook", spec=spec)


def _deployment(values: Values) -> Manifest:
    volume: Manifest = {"name": "certs", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
    if values.cert_manager:
        volume = {"name": "certs", "secret": {"secretName": SECRET, "defaultMode": 0o440}}
    spec = {"terminationGracePeriodSeconds": GRACE, "containers": [_container(values)], "volumes": [volume, _CALLERS]}
    return deployment("webhook", values, replicas=values.replicas, spec=spec)


def _container(values: Values) -> Manifest:
    return {
        "name": "webhook",
        "image": values.image,
        "args": ["webhook"],
        "env": variables(environment(values)),
        "ports": [{"name": "https", "containerPort": values.port, "protocol": "TCP"}],
        "readinessProbe": _probe("/readyz", periodSeconds=2, failureThreshold=2),
        "livenessProbe": _probe("/healthz", periodSeconds=10, failureThreshold=6),
        # The first pair may have to be made and told to both configurations before anything listens.
        "startupProbe": _probe("/healthz", periodSeconds=2, failureThreshold=60),
        # No CPU limit: a throttled webhook stalls every pod that is created.
        "resources": {"requests": {"cpu": "100m", "memory": "192Mi"}, "limits": {"memory": "512Mi"}},
        "volumeMounts": [
            {"name": "certs", "mountPath": CERTS, **({"readOnly": True} if values.cert_manager else {})},
            {"name": "callers", "mountPath": CALLERS, "readOnly": True},
        ],
    }


_CALLERS: Manifest = {"name": "callers", "configMap": {"name": "trimtab-callers", "optional": True}}
"""An empty folder, unless somebody makes that ConfigMap: then nothing else has to be mounted."""


def environment(values: Values) -> dict[str, str]:
    """The process's settings: those whose default is for a laptop."""
    own = {
        "TRIMTAB_LISTEN": f"0.0.0.0:{values.port}",
        "TRIMTAB_CERTS": CERTS,
        "TRIMTAB_CLUSTER": "live",
        "TRIMTAB_NAMESPACE": values.namespace,
        "TRIMTAB_GRACEFUL_TIMEOUT": f"{Settings().graceful_timeout:g}",
        "TRIMTAB_LOG_FORMAT": "json",
    }
    if not values.cert_manager:
        own |= {
            "TRIMTAB_CERTS_SECRET": SECRET, "TRIMTAB_SERVICE": WEBHOOK, "TRIMTAB_CONFIGURATION": CONFIGURATION,
        }  # fmt: skip
    return own


def _probe(path: str, **more: int) -> Manifest:
    return probe(path, "https", "HTTPS", **more)
