"""The manifests that show each rule: `rule_cases/CODE/{bad,good}.yaml`, and what a real API server made of them.

bad.yaml        the rule finds something
good.yaml       nearly the same, and the rule finds nothing
captured.json   the objects of one of them, as a real API server printed them (see `capture_objects`)
world.yaml      what is known beside the objects: usage, replicas, live, now, kubernetes; captured_now: when
                captured.json is judged; captured_live: false where it counts as a file that was printed
"""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from trimtab.autoscaling.lint import LintResult, check_snapshot
from trimtab.autoscaling.lint_snapshot import LintSnapshot, MeasuredReservation
from trimtab.autoscaling.read_snapshot import LISTED_KINDS, parse_minor, read_lint_snapshot
from trimtab.autoscaling.rule import RuleFinding
from trimtab.autoscaling.rules import RULES_BY_CODE
from trimtab.autoscaling.usage_history import ReplicaUsage, ResourceUsage, UsageHistory
from trimtab.cluster.owner import parse_owner_key
from trimtab.cluster.timestamps import parse_timestamp
from trimtab.cluster.yaml_documents import Document, read_documents

FOLDER = Path(__file__).parent / "rule_cases"
CODES = tuple(sorted(path.name for path in FOLDER.iterdir() if path.is_dir()))


@cache
def world_of(code: str) -> dict[str, Any]:
    file = FOLDER / code / "world.yaml"
    return dict(yaml.safe_load(file.read_text())) if file.exists() else {}


def documents_of(code: str, name: str) -> tuple[Document, ...]:
    file = FOLDER / code / name
    reading = read_documents(file.name, file.read_bytes())
    assert not reading.mistakes, reading.mistakes
    return reading.documents


def usage_of(world: dict[str, Any]) -> UsageHistory | None:
    if "usage" not in world and "replicas" not in world:
        return None
    containers = {
        (parse_owner_key(name.rpartition("/")[0]), name.rpartition("/")[2]): {
            resource: ResourceUsage(**{**amounts, "pod_means": tuple(amounts.get("pod_means", ()))})
            for resource, amounts in by_resource.items()
        }
        for name, by_resource in world.get("usage", {}).items()
    }
    replicas = {parse_owner_key(name): ReplicaUsage(**counts) for name, counts in world.get("replicas", {}).items()}
    return UsageHistory(containers=containers, replicas=replicas, clusters=tuple(world.get("clusters", ())))  # type: ignore[arg-type]


def snapshot_of(code: str, name: str, *, is_live: bool | None = None) -> LintSnapshot:
    """The objects of one file with the world of its rule."""
    world = world_of(code)
    live = world.get("live", False) if is_live is None else is_live
    now = world.get("now", "")
    if name == "captured.json":
        live, now = world.get("captured_live", live), world.get("captured_now", now)
    reading = read_lint_snapshot(
        documents_of(code, name),
        is_live=live,
        now=parse_timestamp(now),
        minor=parse_minor(str(world.get("kubernetes", ""))),
        usage=usage_of(world),
        kinds=LISTED_KINDS if live else (),
        reservations=tuple(MeasuredReservation(**one) for one in world.get("reservations", ())),
    )
    assert not reading.mistakes, reading.mistakes
    return reading.snapshot


def lint_case(code: str, name: str, *, is_live: bool | None = None) -> LintResult:
    """What the rule alone says of one file."""
    return check_snapshot(snapshot_of(code, name, is_live=is_live), [RULES_BY_CODE[code]])


def findings_of(code: str, name: str, *, is_live: bool | None = None) -> tuple[RuleFinding, ...]:
    result = lint_case(code, name, is_live=is_live)
    assert not result.not_checked, [str(missing) for missing in result.not_checked]
    return result.findings
