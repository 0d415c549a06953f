"""A cluster in which texts of others are hostile, and how each verb reads it."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from tests.cli.recommending import deployment, hpa, usage, vpa, web
from tests.cli.snapshots import pool
from tests.cluster_of import Item, budget, node
from tests.golden.commands import iter_commands
from trimtab.cluster.control_characters import escape_in_json

LINK = "[link=https://evil.example][reverse][/]x[/]:bomb:"
LINE = "forged a finding"
LINES = f"\n{LINE}\n::stop-commands::z\r\n::error file=x::{LINE}\n##[error]{LINE}\n##vso[task.complete]z\t{LINE}\n"
"""Line ends that would begin a line of a report, and commands of CI systems: GitHub, Azure Pipelines."""
MARKDOWN = "[see](https://evil.example/fix) {0} {{1}}"
"""A link and placeholders, which SARIF has in its messages."""
FORMULAS = ";=cmd|' /C calc'!A0;\t@SUM(A1)\t,+cmd|x,\uff1dx"
"""Formulas that begin a cell if a spreadsheet divides the text at one of its separators."""
SEQUENCES = "\x1b]8;;https://evil.example\x07\x1b[2J\x9b7m\x85\u202ebidi\u2066\x7f\u061c\u200b\u2028\ufeff"
"""Control characters of both sets, characters that reorder what follows, and characters that are not shown."""
HOSTILE = f"{LINK}{MARKDOWN}{SEQUENCES}{FORMULAS}{LINES}"
"""What a terminal, a CI system, a spreadsheet or a reader of SARIF would obey."""

FREE_TEXT = (
    "name",
    "kind",
    "reason",
    "namespace",
    "uid",
    "nodeName",
    "image",
    "message",
    "description",
    "value",
    "team",
)
"""The fields whose text the API server does not check, or that a file may contain anyway."""

LABELS = {
    "nodepool": "web",
    "node.kubernetes.io/instance-type": "m5.xlarge",
    "topology.kubernetes.io/region": "us-east-1",
    "trimtab.dev/price": "200000",
}
CLASS: Item = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "kata"},
    "handler": "kata",
    "overhead": {"podFixed": {"cpu": "250m", "memory": "64Mi"}},
    "scheduling": {"nodeSelector": {"sandbox": "kata"}},
}
POLICY: Item = {
    "apiVersion": "trimtab.dev/v1alpha1",
    "kind": "PodPolicy",
    "metadata": {"name": "sizes"},
    "spec": {"description": "what it does", "actions": {"limits": {"cpu": "remove"}}},
}
CLAIM: Item = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "shop"},
    "spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}},
    "status": {"phase": "Bound"},
}
SUMMARY = {
    "node": {
        "nodeName": "a",
        "cpu": {"time": "2026-01-08T00:00:00Z", "usageNanoCores": 900_000_000},
        "memory": {"time": "2026-01-08T00:00:00Z", "workingSetBytes": 1 << 30},
    },
    "pods": [
        {
            "podRef": {"name": "web-0", "namespace": "shop"},
            "cpu": {"usageNanoCores": 600_000_000},
            "memory": {"workingSetBytes": 180 << 20},
            "containers": [
                {"name": "app", "cpu": {"usageNanoCores": 300_000_000}, "memory": {"workingSetBytes": 60 << 20}}
            ],
        }
    ],
}


PRINTED_FINDING = {
    "rule": "L35",
    "severity": "error",
    "kind": "Deployment",
    "namespace": "shop",
    "name": "web",
    "sentence": "a sentence",
    "fix": "a fix",
}
PRINTED_LINT = {
    "kind": "LintReport",
    "findings": [PRINTED_FINDING],
    "notChecked": ["L1"],
    "objects": 1,
    "rules": 2,
    "counts": {"error": 1},
}
"""What another verb printed, as a file that others may have changed."""
PRINTED_TEXTS = ("rule", "severity", "namespace", "name", "sentence", "fix", "notChecked")


def cluster_items() -> list[Item]:
    """Returns one object of each kind that reports read, as they are without hostile text."""
    nodes = [node(name, "4", "16Gi", labels=LABELS) for name in "abc"]
    for one in nodes:
        one["status"]["capacity"] = dict(one["status"]["allocatable"])
    pods = [web(f"web-{number}", limits={"cpu": "2", "memory": "1Gi"}) for number in range(4)]
    for number, one in enumerate(pods):
        one["spec"]["nodeName"] = "ab"[number % 2]
        one["spec"]["runtimeClassName"] = "kata"
        one["metadata"]["labels"]["team"] = "front"
        one["metadata"]["uid"] = f"uid-{number}"
    stuck = web("alone")
    stuck["metadata"].pop("ownerReferences")
    database = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "shop"},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "db", "image": "db:1"}]}}},
    }
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "shop"},
        "reason": "Failed",
        "message": "it failed",
        "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "web-0"},
    }
    rules = "mode: rehearse\nselector: {nodepool: web}\n"
    return [
        *nodes,
        *pods,
        stuck,
        deployment(),
        hpa(80),
        vpa(),
        database,
        event,
        CLASS,
        POLICY,
        CLAIM,
        budget("web", 1),
        pool("web", rules),
    ]


AMOUNTS = frozenset({"cpu", "memory", "storage", "pods", "minAvailable", "averageUtilization"})
"""The fields that hold quantities, which no API server stores with other text."""


def with_hostile_text(value: Any, fields: tuple[str, ...] | None = FREE_TEXT, key: str = "") -> Any:
    """Returns the value with hostile text behind every string in these fields; None: in every field."""
    if isinstance(value, list):
        return [with_hostile_text(one, fields, key) for one in value]
    if isinstance(value, dict):
        return {name: with_hostile_text(one, fields, name) for name, one in value.items()}
    is_hostile = isinstance(value, str) and (key not in AMOUNTS if fields is None else key in fields)
    return f"{value}{HOSTILE}" if is_hostile else value


def hostile_items(fields: tuple[str, ...] | None = FREE_TEXT) -> list[Item]:
    """Returns the objects with hostile text; their own kinds stay, because they say what the objects are."""
    return [
        {
            "apiVersion": item["apiVersion"],
            "kind": item["kind"],
            **with_hostile_text({key: part for key, part in item.items() if key not in ("kind", "apiVersion")}, fields),
        }
        for item in cluster_items()
    ]


def string_fields() -> list[str]:
    """Returns the name of every field of the objects that holds a string."""

    def names(value: Any, key: str) -> Iterator[str]:
        if isinstance(value, dict):
            for name, one in value.items():
                yield from names(one, name)
        elif isinstance(value, list):
            for one in value:
                yield from names(one, key)
        elif isinstance(value, str):
            yield key

    fields = {name for item in cluster_items() for name in names(item, "")}
    return sorted(fields - {"kind", "apiVersion"})


class HostileFiles:
    """The files of a hostile cluster in a folder."""

    def __init__(self, folder: Path, fields: tuple[str, ...] | None = FREE_TEXT) -> None:
        self.folder = folder
        items = hostile_items(fields)
        self.cluster = self._write("cluster.json", {"apiVersion": "v1", "kind": "List", "items": items})
        of_kinds = [item for item in items if item["kind"] in ("Deployment", "StatefulSet", "Pod")]
        self.manifests = self._write("manifests.json", {"apiVersion": "v1", "kind": "List", "items": of_kinds})
        self.policies = self._write("policies.yaml", next(item for item in items if item["kind"] == "PodPolicy"))
        self.sound_policies = self._write(
            "sound.yaml", {**POLICY, "spec": with_hostile_text(POLICY["spec"], FREE_TEXT)}
        )
        self.pools = self._write("pools.yaml", next(item for item in items if item["kind"] == "ConfigMap"))
        self.summary = self._write("summary.json", with_hostile_text(SUMMARY, fields))
        self.usage = usage(folder, hours=72)
        # A line of CSV has no line end, and its cells no comma.
        in_a_cell = re.sub(r"[\n\r\x85\u2028,]", "", HOSTILE)
        rows = self.usage.read_text().replace(",app,", f",app{in_a_cell},")
        self.usage.write_text(rows, encoding="utf-8")
        texts = PRINTED_TEXTS if fields == FREE_TEXT else fields
        self.findings = self._write("lint.json", {**with_hostile_text(PRINTED_LINT, texts), "kind": "LintReport"})
        self.trace = folder / "pods.csv"
        header = "cpu_milli,memory_mib,num_gpu,pod_phase,creation_time,deletion_time"
        self.trace.write_text(f"{header}\n1{in_a_cell},1,0,Running,1,2\n", encoding="utf-8")
        self.clusters = folder / "clusters"
        self.clusters.mkdir()
        text = self.cluster.read_text()
        (self.clusters / "east\x1b]8;;x\x07\u202e.json").write_text(text)
        (self.clusters / "west.json").write_text(text)

    def _write(self, name: str, document: object) -> Path:
        path = self.folder / name
        path.write_text(escape_in_json(json.dumps(document)))
        return path


NOW = "2026-01-08T00:00:00Z"
Arguments = Callable[[HostileFiles], tuple[str | Path, ...]]


def _on_cluster(*words: str | Path) -> Arguments:
    return lambda files: (*words, "--cluster", files.cluster)


RUNS: dict[str, Arguments] = {
    "admit": lambda files: ("-f", files.manifests, "--policies", files.sound_policies, "--cluster", files.cluster),
    "plan": _on_cluster("--now", NOW),
    "simulate": _on_cluster("--now", NOW),
    "drain": _on_cluster("a" + HOSTILE, "--dry-run"),
    "recommend": lambda files: ("--usage", files.usage, "--cluster", files.cluster, "--pod-level"),
    "machines legacy": _on_cluster("--pool", "web", "--to-pool", "new"),
    "machines priorities": _on_cluster(),
    "machines profile": _on_cluster(),
    "machines rank": _on_cluster(),
    "fleet machines": lambda files: ("--clusters", files.clusters, "--now", NOW),
    "fleet plan": lambda files: ("--clusters", files.clusters, "--now", NOW),
    "scheduler config": _on_cluster(),
    "scheduler manifests": _on_cluster(),
    "pools check": lambda files: (files.pools, "--cluster", files.cluster),
    "pools import": lambda files: (files.pools,),
    "policies check": lambda files: (files.policies, "--cluster", files.cluster),
    "policies compile": lambda files: (files.sound_policies,),
    "policies explain": lambda files: ("--policies", files.sound_policies),
    "policies list": _on_cluster(),
    "policies rollout": lambda files: ("sizes", "--policies", files.sound_policies, "--cluster", files.cluster),
    "policies test": lambda files: (files.folder, "--policies", files.policies),
    "reserved formula": _on_cluster(),
    "reserved measure": lambda files: ("--cluster", files.cluster, "--summary", files.summary),
    "lint": _on_cluster(),
    "runtimeclass cost": _on_cluster(),
    "runtimeclass measure": lambda files: ("--cluster", files.cluster, "--summary", files.summary),
    "runtimeclass render": lambda files: (f"kata{HOSTILE}", "--cluster", files.cluster, "--summary", files.summary),
    "idle": lambda files: ("--cluster", files.cluster, "--usage", files.usage, "--now", NOW),
    "vpa propose": lambda files: ("--cluster", files.cluster, "--usage", files.usage),
    "vpa simulate": lambda files: ("--cluster", files.cluster, "--usage", files.usage),
    "autoscaler propose": _on_cluster(),
    "compactor history": _on_cluster("--now", NOW),
    "savings": _on_cluster("--now", NOW),
    "why node": _on_cluster("a" + HOSTILE),
    "why pod": _on_cluster(f"web-0{HOSTILE}", "--namespace", f"shop{HOSTILE}"),
    "metrics-api check": lambda files: (files.pools,),
    "report": lambda files: (files.findings, "--title", f"East{HOSTILE}"),
    "explain": lambda _: (f"no-such-code{HOSTILE}",),
    "help": lambda _: (f"no-such-verb{HOSTILE}",),
}
"""Verb → its arguments for the hostile files, without the format."""

MORE_RUNS: dict[str, Arguments] = {
    "plan --for": _on_cluster("cpu=1,memory=1Gi,count=2", "--as-order", "--now", NOW),
    "plan --for-pending": _on_cluster("--as-order", "--now", NOW),
    "plan --for-node-of": _on_cluster("web", "--as-order", "--now", NOW),
    "plan --group": _on_cluster("small=m5.large,zone=z1,nodepool=small", "--now", NOW),
    "drain --surge-pods": _on_cluster("a" + HOSTILE, "--surge-pods", "3", "--dry-run"),
    "simulate --replace": _on_cluster("--now", NOW),
    "simulate --churn": lambda files: ("--churn-hours", "1", "--churn-trace", files.trace),
}
"""Verb with an option → the other arguments."""

_LIVE = "it reads a cluster and no snapshot; what it prints goes through the same printers (tests/architecture)"
_OWN = "it prints only Trimtab's own text"
_PROCESS = "it runs a process, whose log replaces control characters"
WITHOUT_SNAPSHOT: dict[str, str] = {
    "recommender": _PROCESS,
    "compactor": _PROCESS,
    "webhook": _PROCESS,
    "watchdog": _PROCESS,
    "metrics-api": _PROCESS,
    "compactor pause": _LIVE,
    "compactor release": _LIVE,
    "compactor resume": _LIVE,
    "compactor status": _LIVE,
    "replay": "it reads captures of many times and no snapshot; its texts go through the printers of every report",
    "top": _LIVE,
    "capture": _LIVE,
    "doctor": _LIVE,
    "metrics-api propose-hpa": _LIVE,
    "certs issue": _OWN,
    "certs rotate": _LIVE,
    "certs rotate-signing-key": _LIVE,
    "certs status": _LIVE,
    "fleet ingest": "it reads Prometheus and writes Parquet",
    "fleet recommend": "it reads Parquet of `fleet ingest`, and prints by the console of `recommend`",
    "fleet report": "it reads Parquet of `fleet ingest`, and prints by the console of `fleet plan`",
    "policies schema": _OWN,
    "install": _OWN,
    "completion": _OWN,
    "version": _OWN,
    "demo": _OWN,
}
"""Verb without a snapshot as its input → why that is so, or why no test of hostile text needs it."""


def all_verbs() -> dict[str, tuple[str, ...]]:
    """Returns every verb of the command line, with its formats; one empty format for a verb that has no choice."""
    return {words: _formats(command) for words, command in iter_commands()}


FORMAT_OPTIONS = {"machines priorities": "--as", "scheduler config": "--platform", "policies compile": "--to"}
"""Verb → the option by which its format is chosen, if it is not `-o`."""


def _formats(command: click.Command) -> tuple[str, ...]:
    choices = [
        option.type.choices
        for option in command.params
        if isinstance(option.type, click.Choice) and {"-o", *FORMAT_OPTIONS.values()}.intersection(option.opts)
    ]
    return tuple(map(str, choices[0])) if choices else ("",)


def format_option(verb: str) -> str:
    """Returns the option by which a verb's format is chosen."""
    return FORMAT_OPTIONS.get(verb, "-o")
