"""Which arguments each command gets, and which commands have no stored output, with the reason.

A command of the click tree that is in neither table fails `test_golden`; so does an output format that is new.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import click

from tests.golden.snapshots import NOW
from trimtab.cli.command_tree import iterate_contexts

_CLUSTER = ("--cluster", "cluster.json")
_IMAGE = ("--image", "registry.example.com/trimtab:1")
_LIVE = ("--kubeconfig", "kubeconfig")
_PLANNED = (*_CLUSTER, "--now", NOW)
_POLICIES = ("--policies", "policies.yaml")
_ADMITTED = ("-f", "manifests.yaml", *_POLICIES, *_CLUSTER)
_USAGE = ("--usage", "usage.csv")
_PRICED = (*_CLUSTER, "--pool", "{pool}", "--region", "us-east-1")
_FLEET = ("--clusters", "clusters", "--now", NOW)
_RUNS_ON = "it runs until it is stopped"

ARGUMENTS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "admit": (_ADMITTED, (*_ADMITTED, "--details"), ("--running", *_CLUSTER, *_POLICIES)),
    "plan": (
        _PLANNED,
        (*_PLANNED, "--explain", "node", "{node}"),
        (*_PLANNED, "--resize", "--preset", "{pool}=keen"),
        (*_PLANNED, "--for", "cpu=2,memory=1Gi,count=2,within=zone", "--as-order"),
        (*_PLANNED, "--for", "cpu=2000,memory=1Gi"),
        (*_PLANNED, "--for-node-of", "{pool}", "--as-order"),
    ),
    "drain": (
        ("{node}", "--dry-run", *_CLUSTER),
        ("{node}", "--dry-run", "--force", "--keep-going", *_CLUSTER),
        ("{node}", "--dry-run", "--surge-pods", "3", *_CLUSTER),
    ),
    "simulate": (_PLANNED, (*_PLANNED, "--scheduler", "spread"), (*_PLANNED, "--replace")),
    "recommend": (
        (*_CLUSTER, *_USAGE, "--now", NOW),
        (*_CLUSTER, *_USAGE, "--total-by", "namespace"),
        (*_CLUSTER, *_USAGE, "--pod-level"),
    ),
    "compactor history": (_LIVE, (*_LIVE, "--pool", "{pool}", "--evictions"), _PLANNED),
    "compactor status": (_LIVE,),
    "compactor release": (_LIVE,),
    "machines legacy": ((*_CLUSTER, "--pool", "{pool}", "--to-pool", "batch"),),
    "machines priorities": (_PRICED, (*_PRICED, "--as", "nodeoverlay")),
    "machines profile": (_CLUSTER, (*_CLUSTER, "--pool", "{pool}")),
    "machines rank": (
        (*_PRICED, "--rows", "3", "--no-pack", "--types", "[cm]5\\..*"),
        (*_PRICED, "--rows", "1", "--types", "m5\\.large"),
    ),
    "fleet ingest": (("--samples", "usage.csv", "--usage", "new-history", "--cluster-name", "east", "--now", NOW),),
    "fleet machines": (_FLEET,),
    "fleet plan": (_FLEET,),
    "fleet recommend": ((*_FLEET, "--usage", "history"),),
    "fleet report": ((*_FLEET, "--usage", "history"),),
    "scheduler config": (_CLUSTER, (*_CLUSTER, "--platform", "gke")),
    "scheduler manifests": (_CLUSTER,),
    "pools check": (("pools.yaml",), _CLUSTER),
    "pools import": (("estafette.yaml",),),
    "policies check": (("policies.yaml",), _CLUSTER),
    "policies compile": (
        ("sandbox.yaml", "--to", "validatingadmissionpolicy"),
        ("sandbox.yaml", "--to", "mutatingadmissionpolicy"),
        ("policies.yaml", "--to", "mutatingadmissionpolicy"),
    ),
    "policies explain": ((*_POLICIES, "{policy}"),),
    "policies list": (("policies.yaml",), _CLUSTER),
    "policies rollout": (("{policy}", *_POLICIES, *_CLUSTER), ("{policy}", *_POLICIES, *_CLUSTER, "--at", "10")),
    "reserved formula": (_CLUSTER, ("--cpu", "8", "--memory", "32Gi", "--details")),
    "reserved measure": ((*_CLUSTER, "--summary", "summary.json", "--now", NOW),),
    "lint": (_CLUSTER, (*_CLUSTER, *_USAGE, "--kubernetes", "1.36"), ("-f", "manifests.yaml")),
    "runtimeclass cost": (_CLUSTER,),
    "runtimeclass measure": ((*_CLUSTER, "--summary", "summary.json"),),
    "runtimeclass render": (("kata", *_CLUSTER, "--summary", "summary.json"),),
    "idle": (
        (*_CLUSTER, *_USAGE, "--summary", "summary.json", "--now", NOW),
        (*_CLUSTER, *_USAGE, "--now", NOW, "--manifests"),
    ),
    "vpa propose": ((*_CLUSTER, *_USAGE), (*_CLUSTER, *_USAGE, "--manifests")),
    "vpa simulate": ((*_CLUSTER, *_USAGE, "--namespace", "shop"),),
    "autoscaler propose": ((*_CLUSTER, *_USAGE, "--replay-step", "4h"),),
    "savings": ((*_LIVE, "--since", "30d"), (*_LIVE, "--since", "30d", "--expected"), _PLANNED),
    "report": (("plan.json", "recommend.json", "lint.json", "--title", "East"),),
    "top": ((*_LIVE, "--once"),),
    "capture": (_LIVE,),
    "why node": (("{node}", *_CLUSTER),),
    "why pod": (("{pod}", *_CLUSTER, *_POLICIES),),
    "explain": (("headroom",), ("pool.keep.headroom.percent",), ("no-such-code",)),
    "certs status": (("certificates",),),
    "doctor": (_LIVE,),
    "install": (_IMAGE, (*_IMAGE, "--metrics-api"), (*_IMAGE, "--capture-claim", "captures")),
    "metrics-api check": (("rules.yaml",),),
    "version": ((),),
    "help": ((), ("plan",)),
    "completion": (("bash",),),
}
"""Command → the arguments of each of its runs. A name in braces is a name of the snapshot."""

RUNS_WITHOUT_CLUSTER: Mapping[str, tuple[tuple[str, ...], ...]] = {"simulate": (("--churn", "--churn-hours", "1"),)}
"""More arguments of commands, with which they read nothing of a cluster: their outputs are stored for one snapshot
only."""

WITHOUT_CLUSTER = frozenset(
    {
        "explain",
        "version",
        "help",
        "completion",
        "policies schema",
        "install",
        "pools import",
        "metrics-api check",
        "certs status",
    }
)
"""Commands that read nothing of a cluster: their outputs are stored for one snapshot only."""

LEFT_OUT: Mapping[str, str] = {
    **dict.fromkeys(("recommender", "compactor", "webhook", "watchdog", "metrics-api"), f"{_RUNS_ON}: tests/e2e"),
    "demo": "it prints how long its own requests took: tests/cli/test_demo_steps.py, and `make demo`",
    "compactor pause": "it changes a cluster: tests/cli/test_compactor_pause.py, tests/e2e/test_compactor_asked.py",
    "compactor resume": "it changes a cluster: tests/cli/test_compactor_pause.py, tests/e2e/test_compactor_asked.py",
    "policies schema": "its output is deploy/schemas/podpolicy.schema.json and deploy/crd.yaml",
    "replay": "it reads captures of many times, which no snapshot has: tests/cli/test_replay.py",
    "policies test": "it runs the user's cases: tests/cli/test_policy_cases.py",
    "certs issue": "a new key is different each time: tests/certs",
    "certs rotate": "a new key is different each time: tests/e2e/test_secrets.py",
    "certs rotate-signing-key": "a new key is different each time: tests/e2e/test_signing_keys.py",
    "metrics-api propose-hpa": "it reads a history of its own form: tests/cli/test_metrics_api.py",
}
"""Command → why no output of it is stored, and which tests hold it."""


@dataclass(frozen=True)
class Form:
    """An output format of a command, on a terminal of so many columns or in a pipe (0)."""

    name: str
    columns: int = 0

    def __str__(self) -> str:
        return f"{self.name}, {self.columns} columns" if self.columns else f"{self.name}, in a pipe"


def can_run(command: click.Command) -> bool:
    """Returns whether the command does something by itself: a group often only holds other commands."""
    return not isinstance(command, click.Group) or command.invoke_without_command


def iter_commands() -> Iterator[tuple[str, click.Command]]:
    """Yields each command of the click tree that can run, with its words."""
    for context in iterate_contexts():
        words = context.command_path.removeprefix("trimtab").strip()
        if words and can_run(context.command):
            yield words, context.command


def list_forms(command: click.Command) -> tuple[Form, ...]:
    """Returns every format of a command: a table at two widths and in a pipe, and all choices of `--output`."""
    drawn = (Form("table", 80), Form("table", 200), Form("table"))
    for option in command.params:
        if "-o" in option.opts and isinstance(option.type, click.Choice):
            choices = [str(choice) for choice in option.type.choices]
            return (*(drawn if "table" in choices else ()), *(Form(name) for name in choices if name != "table"))
    return drawn


def list_brief_forms(command: click.Command) -> tuple[Form, ...]:
    """Returns the formats of the further runs of a command: the narrow table, and JSON."""
    return tuple(form for form in list_forms(command) if form == Form("table", 80) or form.name == "json")
