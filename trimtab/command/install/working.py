"""The processes behind a Lease: one works, its twin waits. None does anything to a cluster without being told to: the
watchdog's brake needs a policy, the compactor a pool whose ConfigMap says `mode: act`, and what the recommender
publishes counts where a policy goes by usage.
"""

from collections.abc import Iterator

from trimtab.command.install.names import Manifest
from trimtab.command.install.pods import deployment, probe, variables
from trimtab.command.install.values import Values

WORKERS = ("watchdog", "compactor", "recommender")
REPLICAS = 2
PORT = 9090
GRACE = {"watchdog": 30, "compactor": 60, "recommender": 60}
"""Seconds from the stop signal to the kill: a compactor writes its books, a recommender its checkpoints."""


LOG_IN = "/var/run/trimtab/prometheus"
"""Where the recommender's `TRIMTAB_PROMETHEUS_TOKEN_FILE` and `_CA` may lead."""
_MOUNTED: dict[str, Manifest] = {
    "recommender": {"volumeMounts": [{"name": "prometheus", "mountPath": LOG_IN, "readOnly": True}]},
}
_VOLUMES: dict[str, Manifest] = {
    # An empty folder, unless somebody makes that Secret: then nothing else has to be mounted.
    "recommender": {"volumes": [
        {"name": "prometheus", "secret": {"secretName": "trimtab-prometheus", "defaultMode": 0o440, "optional": True}},
    ]},
}  # fmt: skip


def working(values: Values) -> Iterator[Manifest]:
    for process in WORKERS:
        containers = [_container(process, values)]
        spec = {
            "terminationGracePeriodSeconds": GRACE[process], "containers": containers, **_VOLUMES.get(process, {}),
        }  # fmt: skip
        yield deployment(process, values, replicas=REPLICAS, spec=spec)


def environment(values: Values) -> dict[str, str]:
    """The settings whose default is for a laptop."""
    return {
        "TRIMTAB_LISTEN": f"0.0.0.0:{PORT}", "TRIMTAB_NAMESPACE": values.namespace, "TRIMTAB_LOG_FORMAT": "json",
    }  # fmt: skip


def _container(process: str, values: Values) -> Manifest:
    return {
        "name": process,
        "image": values.image,
        "args": [process],
        "env": variables(environment(values)),
        "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
        "readinessProbe": probe("/readyz", "http", "HTTP", periodSeconds=5),
        "livenessProbe": probe("/healthz", "http", "HTTP", periodSeconds=10, failureThreshold=6),
        # They hold every pod of the cluster: about half a gigabyte for a hundred thousand.
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}},
        **_MOUNTED.get(process, {}),
    }
