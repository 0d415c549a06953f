"""Determines the scrape targets from the rules and the running pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trimtab.cluster.api.meta import value_or
from trimtab.cluster.api.pod import ScrapedPod
from trimtab.metricsapi.exposition import SeriesFilter
from trimtab.metricsapi.pod_addresses import AddressRules
from trimtab.metricsapi.rules import MetricRule, SampleSource, ScrapeEndpoint


@dataclass(frozen=True, slots=True)
class RunningPod:
    """A running pod."""

    namespace: str
    name: str
    uid: str
    ip: str
    """The pod's IP address; empty if no request may be sent to it."""
    labels: Mapping[str, str]


def retain_pod(shape: ScrapedPod, rules: AddressRules) -> RunningPod:
    """Returns the part of a pod that is stored."""
    meta = shape.metadata
    ip = shape.status.pod_ip if rules.allows(shape.status.pod_ip) else ""
    return RunningPod(meta.namespace, meta.name, meta.uid, ip, dict(value_or(meta.labels, {})))


@dataclass(frozen=True, slots=True)
class ScrapeTarget:
    """One page of one pod, with all rules that read it. Rules with the same endpoint share one scrape."""

    uid: str
    ip: str
    endpoint: ScrapeEndpoint
    token_file: str
    """The name of the file with the bearer token for this pod; empty for none."""
    metrics: tuple[str, ...]
    """The names of the metrics that are read from this pod."""
    namespace: str = ""
    """The pod's namespace, which shares the slots for scrapes with the others."""

    def __hash__(self) -> int:
        # A scrape looks its target up some twenty times: a hash of all fields would cost more than the parse of a page.
        return hash((self.uid, self.metrics))


def find_targets(rules: Iterable[MetricRule], pods: Iterable[RunningPod]) -> tuple[ScrapeTarget, ...]:
    """Returns the targets without duplicates. Pods outside the namespaces that a token names are scraped without the
    token."""
    scraped = [rule for rule in rules if rule.source is SampleSource.SCRAPE]
    targets: list[ScrapeTarget] = []
    for pod in pods:
        pages: dict[tuple[ScrapeEndpoint, str], list[str]] = {}
        for rule in scraped:
            if pod.ip and rule.selects_pod(pod.namespace, pod.labels):
                pages.setdefault((rule.endpoint, rule.token_for(pod.namespace)), []).append(rule.name)
        targets += [
            ScrapeTarget(pod.uid, pod.ip, endpoint, token, tuple(names), pod.namespace)
            for (endpoint, token), names in pages.items()
        ]
    return tuple(targets)


def filters_of_target(target: ScrapeTarget, rules: Mapping[str, MetricRule]) -> tuple[SeriesFilter, ...]:
    """Returns, in the order of the target's metrics, which series are read from its page."""
    return tuple(SeriesFilter(rules[name].series, rules[name].series_labels) for name in target.metrics)
