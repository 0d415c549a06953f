"""What can be chosen about an installation, and why the default is what it is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """One installation. Whatever renders manifests (this command, a chart, a kustomize base) takes these."""

    namespace: str = "trimtab-system"
    """Ours alone: its pods are never changed, and its annotation `trimtab.dev/paused` stops all changes."""

    image: str = "trimtab:0.1.0"
    """What every process runs."""

    replicas: int = 2
    """Of the webhook. One serves thousands of reviews a second; two survive a node."""

    timeout: int = 3
    """Seconds an API server waits for us before it lets the pod through unchanged; 2 or 3."""

    cert_manager: bool = False
    """cert-manager issues the pair and keeps the caBundle; else the replicas do both by themselves."""

    service_port: int = 443
    """Port of the Service."""

    port: int = 8443
    """Port of the process."""
