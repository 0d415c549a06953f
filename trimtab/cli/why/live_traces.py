"""Reads Events about an object, and the lines of the webhook's log about a pod, from a live cluster."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from trimtab.cli.why.report import LiveTraces, PodEventReport
from trimtab.inputs.command_faults import RuntimeFailure
from trimtab.inputs.live_cluster import ClusterOptions
from trimtab.kube.client import Client, connect_to_cluster
from trimtab.kube.errors import KubeFault

MAX_EVENTS = 100
LOG_LINES = 5000
"""The number of lines that are searched at the end of each replica's log."""
MAX_LOG_LINES = 20
MAX_REPLICAS = 5


class _Reference(msgspec.Struct):
    component: str = ""


class _Series(msgspec.Struct, rename="camel"):
    count: int = 0
    last_observed_time: str | None = None


class _Involved(msgspec.Struct, rename="camel"):
    field_path: str | None = None
    """The container, if the Event is about a container."""


class _Event(msgspec.Struct, rename="camel"):
    reason: str | None = None
    message: str | None = None
    source: _Reference | None = None
    reporting_component: str | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    count: int | None = None
    series: _Series | None = None
    involved_object: _Involved | None = None

    @property
    def first_time(self) -> str:
        return self.first_timestamp or self.event_time or self.last_timestamp or ""

    @property
    def last_time(self) -> str:
        observed = self.series.last_observed_time if self.series is not None else None
        return observed or self.last_timestamp or self.event_time or ""

    @property
    def component(self) -> str:
        return self.reporting_component or (self.source.component if self.source is not None else "")

    @property
    def times_seen(self) -> int:
        return max(1, self.count or 0, self.series.count if self.series is not None else 0)


class _EventList(msgspec.Struct):
    items: list[_Event]


class _Metadata(msgspec.Struct):
    name: str


class _Item(msgspec.Struct):
    metadata: _Metadata


class _PodList(msgspec.Struct):
    items: list[_Item]


class _LogLine(msgspec.Struct):
    namespace: str = ""
    pod: str = ""
    owner: str = ""


def read_live_traces(cluster: ClusterOptions, own_namespace: str, namespace: str, name: str, owner: str) -> LiveTraces:
    """Returns Events and log lines about the pod, with a note for each source that cannot be read.

    Raises RuntimeFailure if there is no cluster to connect to."""
    notes: list[str] = []
    events: tuple[PodEventReport, ...] = ()
    log: tuple[str, ...] = ()
    try:
        client = connect_to_cluster(cluster.kubeconfig, cluster.context)
    except KubeFault as error:
        raise RuntimeFailure(str(error)) from None
    try:
        try:
            events = read_events(client, namespace, "Pod", name)
        except (KubeFault, msgspec.DecodeError) as error:
            notes.append(f"Events could not be read: {error}")
        try:
            log = tuple(_read_log(client, own_namespace, namespace, name, owner))[-MAX_LOG_LINES:]
        except (KubeFault, msgspec.DecodeError) as error:
            notes.append(f"The webhook's log could not be read: {error}")
    finally:
        client.close()
    return LiveTraces(events, log, tuple(notes))


def read_events(client: Client, namespace: str, kind: str, name: str) -> tuple[PodEventReport, ...]:
    """Returns the Events about an object, repeated ones merged by `collapse_events`.

    Raises KubeFault, and DecodeError if the response is not a list of Events.
    """
    # The core form of the API: only it can select by the object's name (kubectl describe asks so, too).
    query: dict[str, str | int | None] = {
        "fieldSelector": f"involvedObject.kind={kind},involvedObject.name={name}",
        "limit": MAX_EVENTS,
    }
    content = client.get(
        f"/api/v1/namespaces/{namespace}/events", query, doing=f"list Events of {kind} {name} in {namespace}"
    )
    return collapse_events(content)


def collapse_events(content: bytes) -> tuple[PodEventReport, ...]:
    """Merges the Events of a list that have the same reason, source and container, and returns one line for each group.

    The scheduler, for example, writes an Event again and again with other numbers. The line of the latest Event is
    last."""
    groups: dict[tuple[str, str, str], list[_Event]] = {}
    for event in msgspec.json.decode(content, type=_EventList).items:
        path = (event.involved_object.field_path if event.involved_object is not None else None) or ""
        groups.setdefault((event.reason or "", event.component, path), []).append(event)
    reports = []
    for (reason, component, _), events in groups.items():
        last = max(events, key=lambda event: event.last_time)
        reports.append(
            PodEventReport(
                first=min(event.first_time for event in events),
                at=last.last_time,
                count=sum(event.times_seen for event in events),
                reason=reason,
                source=component,
                note=last.message or "",
            )
        )
    return tuple(sorted(reports, key=lambda report: report.at))


def _read_log(client: Client, own_namespace: str, namespace: str, name: str, owner: str) -> Iterator[str]:
    pods = f"/api/v1/namespaces/{own_namespace}/pods"
    query: dict[str, str | int | None] = {"labelSelector": "app.kubernetes.io/component=webhook", "limit": MAX_REPLICAS}
    replicas = msgspec.json.decode(client.get(pods, query, doing="list the webhook's pods"), type=_PodList).items
    for replica in replicas:
        path = f"{pods}/{replica.metadata.name}/log"
        tail: dict[str, str | int | None] = {"tailLines": LOG_LINES}
        text = client.get(path, tail, doing=f"read the log of {replica.metadata.name}", accept="*/*").decode(
            "utf-8", "replace"
        )
        yield from select_log_lines(text, namespace, name, owner)


def select_log_lines(text: str, namespace: str, name: str, owner: str) -> Iterator[str]:
    """Yields the log lines (JSON) about this pod.

    A line is about the pod if it contains the pod's name, the prefix of its generated name, or its topmost owner."""
    for line in text.splitlines():
        try:
            about = msgspec.json.decode(line, type=_LogLine)
        except (msgspec.DecodeError, RecursionError):
            continue
        is_named = about.pod == name or (about.pod.endswith("-") and name.startswith(about.pod))
        if about.namespace == namespace and (is_named or (about.owner and about.owner == owner)):
            yield line
