"""A cluster's past from a Prometheus that scrapes kube-state-metrics, for `trimtab replay`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from trimtab.autoscaling.replay.scraped_rounds import (
    ScrapedCluster,
    ScrapedNode,
    ScrapedNodeState,
    ScrapedPodLife,
)
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import format_count, join_first
from trimtab.cluster.node import HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, REGION_LABEL, ZONE_LABEL
from trimtab.cluster.pool_labels import POOL_LABELS
from trimtab.cluster.timestamps import Seconds
from trimtab.inputs.command_faults import UsageError
from trimtab.usage.state_history import LabelValues, SeenSpan, StateHistory

ALLOWLIST = "--metric-labels-allowlist=nodes=[*]"
"""The flag of kube-state-metrics with which it shows the labels of nodes."""
KNOWN_LABELS = (
    *POOL_LABELS,
    ZONE_LABEL,
    REGION_LABEL,
    INSTANCE_TYPE_LABEL,
    HOSTNAME_LABEL,
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "node.kubernetes.io/windows-build",
    "karpenter.sh/capacity-type",
    "trimtab.dev/price",
)
"""The labels of nodes that Trimtab reads. kube-state-metrics writes their names with underscores."""
_RESOURCES = {"ephemeral_storage": "ephemeral-storage"}
_POD = ("namespace", "pod", "uid")


def _underscored(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", label)


_LABELS = {_underscored(label): label for label in KNOWN_LABELS}
QUERIED_PARTS = 23
"""How many queries each part of the time takes, for the progress that is shown."""
SHORT_HOLE_STEPS = 3
"""kube-state-metrics that restarts is not scraped for so many steps, and nothing is unknown because of it: its series
are the same before and after."""
_OS_LABEL = "kubernetes.io/os"
"""A label that each kubelet gives its node: where it is shown, a label that is not there is none that is hidden."""
WATCHED_METRICS = (
    "kube_node_created",
    "kube_node_spec_unschedulable",
    "kube_node_status_condition",
    "kube_pod_created",
    "kube_pod_nodeselectors",
    "kube_pod_status_phase",
    "kube_pod_status_scheduled_time",
    "kube_pod_tolerations",
)
"""The metrics that a replay can do without, and that each cluster with a pod has."""
WITHOUT_UID = "kube_pod_info with the label uid"
"""It stands among the absent metrics if the label was dropped, as some do to have fewer series."""


def read_scraped_cluster(history: StateHistory) -> ScrapedCluster:
    """Returns the cluster in this time. Raises UsageError if the server does not have what a replay needs, and
    UsageFault if it cannot be read."""
    mixed = history.find_mixed_clusters("kube_node_info")
    if mixed:
        raise UsageError(
            [
                ConfigError(
                    file="--prometheus",
                    expected="the series of one cluster only",
                    got=str(one),
                    todo=f"choose one with --matcher '{one.example_matcher}'",
                )
                for one in mixed
            ]
        )
    nodes = tuple(_read_nodes(history))
    _check_labels(nodes)
    pods = tuple(_read_pods(history))
    runs = history.read_runs("kube_node_info", ()).get((), [])
    _check_metrics(
        {
            "kube_node_info": runs,
            "kube_node_status_allocatable": any("cpu" in node.allocatable for node in nodes),
            "kube_pod_info": pods,
            "kube_pod_container_resource_requests": any(pod.requests for pod in pods),
        }
    )
    owners = history.read_values("kube_replicaset_owner", ("namespace", "replicaset", "owner_kind", "owner_name"))
    budgets = history.read_values(
        "kube_poddisruptionbudget_status_desired_healthy", ("namespace", "poddisruptionbudget")
    )
    return ScrapedCluster(
        begin=runs[0].first,
        end=runs[-1].last,
        step=history.step,
        nodes=nodes,
        pods=pods,
        top_owners={
            (namespace, name): (kind, top) for namespace, name, kind, top in owners if kind not in ("", "<none>")
        },
        gaps=tuple(
            (before.last, after.first)
            for before, after in pairwise(runs)
            if after.first - before.last > SHORT_HOLE_STEPS * history.step
        ),
        budgets=tuple(sorted(f"{namespace}/{name}" for namespace, name in budgets)),
        absent_metrics=(
            *history.find_absent(
                (
                    *WATCHED_METRICS,
                    *(["kube_replicaset_owner"] if any(pod.owner_kind == "ReplicaSet" for pod in pods) else []),
                ),
                runs[-1].last,
            ),
            *(() if any(pod.uid for pod in pods) else (WITHOUT_UID,)),
        ),
    )


def _check_metrics(required: Mapping[str, object]) -> None:
    """Raises UsageError if metrics show nothing without which each answer would be made up. `required`: the metric →
    what it shows, or whether it shows something."""
    mistakes = [
        ConfigError(
            file="--prometheus",
            expected=f"the series of kube-state-metrics {metric}",
            got="none in this time",
            todo="let the server scrape and keep this metric, check --matcher, --days and --now, or replay captures",
        )
        for metric, content in required.items()
        if not content
    ]
    if mistakes:
        raise UsageError(mistakes)


# ── nodes ────────────────────────────────────────────────────────────────────────────────────────────
def _read_nodes(history: StateHistory) -> Iterator[ScrapedNode]:
    infos = history.read_spans("kube_node_info", ("node", "provider_id"))
    _check_metrics({"kube_node_info": infos})
    created = {
        node: [int(second) for second in seconds]
        for (node,), seconds in history.read_changes("kube_node_created", ("node",)).items()
    }
    amounts = {
        metric: _by_object(history.read_values(f"kube_node_status_{metric}", ("node", "resource")))
        for metric in ("allocatable", "capacity")
    }
    taints: dict[str, dict[LabelValues, list[SeenSpan]]] = defaultdict(dict)
    for (node, *taint), runs in history.read_runs("kube_node_spec_taint", ("node", "key", "value", "effect")).items():
        taints[node][tuple(taint)] = runs
    changes = NodeChanges(
        labels=_read_label_spans(history),
        taints=taints,
        cordons=history.read_runs("kube_node_spec_unschedulable", ("node",)),
        ready=history.read_runs("kube_node_status_condition", ("node",), 'condition="Ready",status="true"'),
    )
    former: dict[str, int] = {}
    for (name, provider_id), span in sorted(infos.items(), key=lambda one: one[1].first):
        own = [at for at in created.get(name, []) if former.get(name, 0) < at <= span.last]
        former[name] = span.last
        for begin, end in pairwise((*(own or [_guess_begin(history, span.first)]), span.last + 1)):
            yield ScrapedNode(
                name=name,
                created=begin,
                last=end - 1,
                allocatable=amounts["allocatable"].get((name,), {}),
                capacity=amounts["capacity"].get((name,), {}),
                states=changes.list_states(name, SeenSpan(max(begin, span.first), end - 1), history.step),
                provider_id=provider_id,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChanges:
    """What changed of nodes, and when."""

    labels: Mapping[str, list[tuple[SeenSpan, dict[str, str]]]]
    """Node → its labels in each time."""
    taints: Mapping[str, Mapping[LabelValues, list[SeenSpan]]]
    """Node → (key, value, effect) → when the node had the taint."""
    cordons: Mapping[LabelValues, list[SeenSpan]]
    ready: Mapping[LabelValues, list[SeenSpan]]

    def list_states(self, name: str, span: SeenSpan, step: int) -> tuple[ScrapedNodeState, ...]:
        """Returns the states of the node in the order of their times. Of several texts of its labels at one time, those
        of two kube-state-metrics, the one with most labels counts."""
        labels = self.labels.get(name, [])
        taints = self.taints.get(name, {})
        cordons, ready = self.cordons.get((name,), []), self.ready.get((name,), [])
        times = {span.first, *(one.first for one, _ in labels)}
        for runs in (*taints.values(), cordons, ready):
            times |= {second for run in runs for second in (run.first, run.last + step)}
        states: list[ScrapedNodeState] = []
        for at in sorted(second for second in times if span.first <= second <= span.last):
            own = [texts for one, texts in labels if one.first <= at] or [texts for _, texts in labels[:1]]
            present = [texts for one, texts in reversed(labels) if one.first <= at <= one.last] or own[-1:]
            # The sort is stable: of two with as many labels, the latest counts.
            shown = sorted(present, key=len, reverse=True)[0] if present else {}
            # Series are looked at once a step, so what a node has from its first scrape on is seen up to a step later.
            seen = range(at, at + step + 1) if at == span.first else range(at, at + 1)
            state = ScrapedNodeState(
                since=at,
                labels={HOSTNAME_LABEL: name, **shown},
                taints=tuple(sorted(key for key, runs in taints.items() if _is_seen(seen, runs))),  # type: ignore[misc]
                is_cordoned=_is_seen(seen, cordons),
                # A server without the condition says nothing, and most nodes are ready.
                is_ready=not ready or _is_seen(seen, ready),
            )
            if not states or _without_time(states[-1]) != _without_time(state):
                states.append(state)
        return tuple(states)


def _without_time(state: ScrapedNodeState) -> tuple[object, ...]:
    return state.labels, state.taints, state.is_cordoned, state.is_ready


def _is_seen(times: range, runs: Iterable[SeenSpan]) -> bool:
    """Returns whether one of the runs has one of these consecutive seconds."""
    return any(run.first < times.stop and times.start <= run.last for run in runs)


def _read_label_spans(history: StateHistory) -> dict[str, list[tuple[SeenSpan, dict[str, str]]]]:
    columns = tuple(f"label_{name}" for name in _LABELS)
    spans = history.read_spans("kube_node_labels", ("node", *columns))
    by_node: dict[str, list[tuple[SeenSpan, dict[str, str]]]] = defaultdict(list)
    for (node, *texts), span in spans.items():
        labels = {label: text for label, text in zip(_LABELS.values(), texts, strict=True) if text}
        by_node[node].append((span, labels))
    return {node: sorted(own, key=lambda one: one[0].first) for node, own in by_node.items()}


def _check_labels(nodes: tuple[ScrapedNode, ...]) -> None:
    """Raises UsageError if the pools or the zones of nodes are not known. A node whose labels are shown, and which has
    none for its pool as others have, has no pool."""
    mistakes = []
    for what, keys in (("pool", set(POOL_LABELS)), ("zone", {ZONE_LABEL})):
        without = [node for node in nodes if keys.isdisjoint(node.states[-1].labels)]
        if len(without) == len(nodes) or any(_OS_LABEL not in node.states[-1].labels for node in without):
            mistakes.append(
                ConfigError(
                    file="--prometheus",
                    expected=f"the {what} of each node in kube_node_labels",
                    got=f"{format_count(len(without), 'node')} of {len(nodes)} without it",
                    todo=f"start kube-state-metrics with {ALLOWLIST}, or replay captures, which have all labels",
                )
            )
    if mistakes:
        raise UsageError(mistakes)


def _guess_begin(history: StateHistory, first: Seconds) -> Seconds:
    """Returns since when something is there that was scraped first at this second, if nothing says when it began: what
    is scraped in the first step was there before."""
    return history.begin if first <= history.begin + history.step else first


# ── pods ─────────────────────────────────────────────────────────────────────────────────────────────
def _read_pods(history: StateHistory) -> Iterator[ScrapedPodLife]:
    infos = history.read_spans("kube_pod_info", (*_POD, "created_by_kind", "created_by_name", "node"))
    seconds = {
        metric: {key: int(second) for key, second in history.read_values(f"kube_pod_{metric}", _POD).items()}
        for metric in ("created", "status_scheduled_time", "deletion_timestamp", "completion_time")
    }
    requests = {
        part: _by_container(history.read_values(f"kube_pod_{part}_resource_requests", (*_POD, "container", "resource")))
        for part in ("container", "init_container")
    }
    tolerations = _read_tolerations(history)
    selectors = _read_selectors(history)
    ended = history.read_runs("kube_pod_status_phase", _POD, 'phase=~"Succeeded|Failed"')
    by_pod: dict[LabelValues, list[tuple[SeenSpan, LabelValues]]] = defaultdict(list)
    for values, span in infos.items():
        by_pod[values[:3]].append((span, values[3:]))
    _check_nodes_of_pods({key: {node for _, (_, _, node) in spans if node} for key, spans in by_pod.items()})
    for key, spans in by_pod.items():
        namespace, name, uid = key
        kind, owner, node = max(spans, key=lambda one: (bool(one[1][2]), one[0].last))[1]
        with_node = min((span.first for span, values in spans if values[2]), default=None)
        first = min(span.first for span, _ in spans)
        # Without uids, the pods that had a name one after the other are one, which began with the first of them.
        created = min(first, seconds["created"].get(key, _guess_begin(history, first)))
        yield ScrapedPodLife(
            namespace=namespace,
            name=name,
            uid=uid,
            created=created,
            last=max(span.last for span, _ in spans),
            owner_kind="" if kind in ("", "<none>") else kind,
            owner_name="" if owner == "<none>" else owner,
            node=node,
            bound=None
            if with_node is None
            else min(with_node, seconds["status_scheduled_time"].get(key, _guess_begin(history, with_node))),
            deletion=seconds["deletion_timestamp"].get(key),
            finished=seconds["completion_time"].get(key, ended[key][0].first) if key in ended else None,
            requests=requests["container"].get(key),
            init_requests=requests["init_container"].get(key),
            node_selector=selectors.get(key),
            tolerations=tuple(tolerations.get(key, ())),
        )


def _check_nodes_of_pods(nodes_by_pod: Mapping[LabelValues, set[str]]) -> None:
    """Raises UsageError if a pod was on several nodes: a pod never changes its node, but a scrape can replace it."""
    moved = [f"{namespace}/{name}" for (namespace, name, uid), nodes in nodes_by_pod.items() if uid and len(nodes) > 1]
    if moved:
        mistake = ConfigError(
            file="--prometheus",
            expected="one node of each pod in kube_pod_info",
            got=f"several of {format_count(len(moved), 'pod')}: {join_first(sorted(moved), 3)}",
            todo="scrape kube-state-metrics with honor_labels: true, choose one cluster with --matcher, or replay "
            "captures",
        )
        raise UsageError([mistake])


def _by_object(values: Mapping[LabelValues, float]) -> dict[LabelValues, dict[str, str]]:
    """Returns the labels but the last, which is a resource → resource → quantity."""
    amounts: dict[LabelValues, dict[str, str]] = defaultdict(dict)
    for (*key, resource), amount in values.items():
        amounts[tuple(key)][_RESOURCES.get(resource, resource)] = _format_amount(resource, amount)
    return amounts


def _by_container(values: Mapping[LabelValues, float]) -> dict[LabelValues, dict[str, dict[str, str]]]:
    by_pod: dict[LabelValues, dict[str, dict[str, str]]] = defaultdict(dict)
    for key, amounts in _by_object(values).items():
        by_pod[key[:3]][key[3]] = amounts
    return by_pod


def _format_amount(resource: str, amount: float) -> str:
    return f"{round(amount * 1000)}m" if resource == "cpu" else str(round(amount))


def _read_tolerations(history: StateHistory) -> dict[LabelValues, list[dict[str, str]]]:
    values_of_all = history.read_values("kube_pod_tolerations", (*_POD, "key", "operator", "value", "effect"))
    by_pod: dict[LabelValues, list[dict[str, str]]] = defaultdict(list)
    for namespace, pod, uid, key, operator, text, effect in sorted(values_of_all):
        toleration = {"key": key, "operator": operator, "value": text, "effect": effect}
        by_pod[namespace, pod, uid].append({name: word for name, word in toleration.items() if word})
    return by_pod


def _read_selectors(history: StateHistory) -> dict[LabelValues, dict[str, str]]:
    columns = tuple(f"nodeselector_{name}" for name in _LABELS)
    values_of_all = history.read_values("kube_pod_nodeselectors", (*_POD, *columns))
    by_pod: dict[LabelValues, dict[str, str]] = {}
    for values in values_of_all:
        texts = values[3:]
        by_pod[values[:3]] = {label: text for label, text in zip(_LABELS.values(), texts, strict=True) if text}
    return by_pod
