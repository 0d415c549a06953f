"""Runs those rules of `trimtab lint` that concern Trimtab's own work, for `trimtab doctor`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trimtab.autoscaling.rule import RuleFinding

if TYPE_CHECKING:
    from trimtab.kube.client import Client

OWN_RULES = ("L15", "L45", "N01", "N02", "N04", "N07", "N10", "N12", "N13")
"""The rules that check preconditions of the webhook (L15, L45, N13), the compactor (N01, N02, N04, N07) and the
recommender (N10, N12)."""
READ_KINDS = (
    "CapacityBuffer",
    "DaemonSet",
    "Deployment",
    "LimitRange",
    "MutatingWebhookConfiguration",
    "Node",
    "PodPolicy",
    "StatefulSet",
    "VerticalPodAutoscaler",
)
"""The kinds that those rules read, besides the ConfigMaps of Trimtab's own namespace. Pods are not among them: there
may be too many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalingState:
    """The findings of the rules, and what could not be read for them."""

    findings: tuple[RuleFinding, ...] = ()
    notes: tuple[str, ...] = ()
    """Kinds that may not be listed, and objects that cannot be read, one sentence each."""


def read_autoscaling(client: Client, namespace: str) -> AutoscalingState:
    """Returns the findings of `OWN_RULES`, without those that a `lint-ignore` annotation excludes. Raises any
    KubeFault."""
    from trimtab.autoscaling.lint import check_snapshot
    from trimtab.autoscaling.read_snapshot import read_lint_snapshot
    from trimtab.autoscaling.rules import RULES_BY_CODE
    from trimtab.inputs.lint_objects import list_documents
    from trimtab.kube.resources import ListSource, list_sources

    config_maps = ListSource(kind="ConfigMap", group_version="v1", plural="configmaps")
    sources = (*list_sources(READ_KINDS), replace(config_maps, namespace=namespace))
    documents, kinds, notes = list_documents(client, sources)
    reading = read_lint_snapshot(documents, is_live=True, kinds=kinds)
    result = check_snapshot(reading.snapshot, [RULES_BY_CODE[code] for code in OWN_RULES])
    return AutoscalingState(findings=result.findings, notes=(*notes, *map(str, reading.mistakes)))
