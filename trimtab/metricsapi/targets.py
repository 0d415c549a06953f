"""The scrape targets that follow from rules and running pods."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trimtab.cluster.api.meta import value_or
from trimtab.cluster.api.pod import ScrapedPod
from trimtab.metricsapi.exposition import SeriesFilter
from trimtab.metricsapi.rules import MetricRule, SampleSource, ScrapeEndpoint


@dataclass(frozen=True, slots=True)
class RunningPod:
    """A pod that runs."""

    namespace: str
    name: str
    uid: str
    ip: str
    """Empty where no request may be sent to the address."""
    labels: Mapping[str, str]


def retain_pod(shape: ScrapedPod) -> RunningPod:
    """Returns what is stored of a pod."""
    meta = shape.metadata
    ip = shape.status.pod_ip if is_pod_address(shape.status.pod_ip) else ""
    return RunningPod(meta.namespace, meta.name, meta.uid, ip, dict(value_or(meta.labels, {})))


def is_pod_address(text: str) -> bool:
    """Returns whether a request may be sent to this address. A pod's status is written by its kubelet: it must not lead
    to a cloud's metadata service (link-local), nor to many machines at once."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_link_local or address.is_multicast or address.is_unspecified or address.is_reserved)


@dataclass(frozen=True, slots=True)
class ScrapeTarget:
    """One page of one pod, with all rules that read it. Rules with the same endpoint share a scrape."""

    uid: str
    ip: str
    endpoint: ScrapeEndpoint
    token_file: str
    """The name of the file with the bearer token for this pod; empty for none."""
    metrics: tuple[str, ...]
    """The names of the rules."""


def find_targets(rules: Iterable[MetricRule], pods: Iterable[RunningPod]) -> tuple[ScrapeTarget, ...]:
    """Returns the targets, each once. Outside of the namespaces that a token names, pods are scraped without it."""
    scraped = [rule for rule in rules if rule.source is SampleSource.SCRAPE]
    targets: list[ScrapeTarget] = []
    for pod in pods:
        pages: dict[tuple[ScrapeEndpoint, str], list[str]] = {}
        for rule in scraped:
            if pod.ip and rule.selects_pod(pod.namespace, pod.labels):
                pages.setdefault((rule.endpoint, rule.token_for(pod.namespace)), []).append(rule.name)
        targets += [
            ScrapeTarget(pod.uid, pod.ip, endpoint, token, tuple(names)) for (endpoint, token), names in pages.items()
        ]
    return tuple(targets)


def filters_of_target(target: ScrapeTarget, rules: Mapping[str, MetricRule]) -> tuple[SeriesFilter, ...]:
    """Returns the series that are read of its page, in the order of its metrics."""
    return tuple(SeriesFilter(rules[name].series, rules[name].series_labels) for name in target.metrics)
