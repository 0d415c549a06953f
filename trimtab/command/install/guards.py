"""What stands around every process: a drain takes one replica at a time, and nobody connects but to its one port.

Outward nothing is forbidden: where the API server and Prometheus are is nobody's guess.
"""

from collections.abc import Iterator

from trimtab.command.install.names import PROCESSES, Manifest, account, labels, manifest
from trimtab.command.install.values import Values


def guards(values: Values) -> Iterator[Manifest]:
    for process in PROCESSES:
        chosen = {"matchLabels": labels(process)}
        budget = {"maxUnavailable": 1, "selector": chosen}
        yield manifest("policy/v1", "PodDisruptionBudget", account(process), values, component=process, spec=budget)
        yield manifest(
            "networking.k8s.io/v1", "NetworkPolicy", account(process), values, component=process,
            spec={"podSelector": chosen, "policyTypes": ["Ingress"], "ingress": [{"ports": [_port(process)]}]},
        )  # fmt: skip


def _port(process: str) -> Manifest:
    """By name. From anywhere: API servers and kubelets come from addresses that no selector knows."""
    return {"protocol": "TCP", "port": "https" if process == "webhook" else "http"}
