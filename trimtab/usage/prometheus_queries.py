"""The PromQL queries for the usage of containers, and the names of metrics and labels in them.

`prometheus.py` sends these queries in pieces. The queries for out-of-memory kills are in `oom_kills.py`, and those for
the overhead of sandboxes in `prometheus_overhead.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from trimtab.usage.series_subject import CADVISOR_LABELS, EXPORTED_LABELS

LABELS = ("namespace", "pod", "container")
SUBJECTS = ", ".join((*LABELS, *EXPORTED_LABELS))
"""The labels that name a container in the series of kube-state-metrics, which reports other containers than its
own."""
_METRIC = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*", re.ASCII)
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names of metrics and labels on a Prometheus server; the defaults are those of cAdvisor. Relabelling may
    change them, and a recording rule may hold the rate of cpu usage."""

    cpu: str = "container_cpu_usage_seconds_total"
    """The metric of cpu usage, a counter of seconds."""
    cpu_recorded: str = ""
    """A metric in cores, from a recording rule, that is used in place of the counter; empty if there is none."""
    memory: str = "container_memory_working_set_bytes"
    labels: dict[str, str] = field(default_factory=dict)
    """namespace, pod or container → the name of this label on the server."""

    def server_label(self, name: str) -> str:
        """Returns the name of this label on the server."""
        return self.labels.get(name, name)

    def usage_query(self, resource: str, match: str, window: str) -> str:
        """Returns the query for the usage of the matching containers, with the default label names in its result. If
        several scrapers report a container, the larger value counts. `window` is the range of the rate for cpu; for
        memory it is the step, so that no peak between two points is lost."""
        selector = f"{{{self.container_matchers()}{',' if match else ''}{match}}}"
        if resource == "memory":
            inner = f"max_over_time({self.memory}{selector}[{window}])"
        elif self.cpu_recorded:
            inner = f"avg_over_time({self.cpu_recorded}{selector}[{window}])"
        else:
            inner = f"rate({self.cpu}{selector}[{window}])"
        query = f"max by ({', '.join(map(self.server_label, LABELS))}) ({inner})"
        for name in LABELS:
            if self.server_label(name) != name:
                query = f'label_replace({query}, "{name}", "$1", "{self.server_label(name)}", "(.*)")'
        return query

    def container_matchers(self) -> str:
        """Returns the matchers that select containers, that is, neither whole pods nor their pause containers, and no
        series whose labels are those of the program that reports it: they would count as its usage."""
        return ",".join((self.all_container_matchers(), *(f'{label}=""' for label in self.excluded_labels)))

    @property
    def excluded_labels(self) -> tuple[str, ...]:
        """The labels without which a series must be: its labels are otherwise those of the program that reports it."""
        # A server whose labels the user names may have the containers' names in the labels that are excluded here.
        return () if self.labels else (*EXPORTED_LABELS, CADVISOR_LABELS[1])

    def all_container_matchers(self) -> str:
        """Returns the matchers of `container_matchers`, without those that exclude series with other names of their
        containers."""
        container = self.server_label("container")
        return f'{container}!="",{container}!="POD"'


def invalid_names(names: Names) -> list[tuple[str, str]]:
    """Returns (field, what was expected) for each name that no metric or label can have."""
    bad_metrics = [
        (name, "the name of a metric")
        for name in ("cpu", "cpu_recorded", "memory")
        if getattr(names, name) and not _METRIC.fullmatch(getattr(names, name))
    ]
    bad_labels = [
        f"{name}={server_name}" for name, server_name in names.labels.items() if not _LABEL.fullmatch(server_name)
    ]
    return bad_metrics + [(text, "the name of a label") for text in bad_labels]


def parse_label_names(texts: Iterable[str]) -> dict[str, str]:
    """Returns the renamed labels; each text has the form pod=k8s_pod_name. Raises ValueError with what was expected."""
    server_names = {}
    for text in texts:
        name, sign, server_name = (part.strip() for part in text.partition("="))
        if not sign or name not in LABELS or not _LABEL.fullmatch(server_name):
            raise ValueError(f"one of {', '.join(LABELS)} and its name on the server, such as pod=k8s_pod_name")
        server_names[name] = server_name
    return server_names
