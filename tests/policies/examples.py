"""The examples beside the shipped policies: `policies/examples/POLICY/CASE.{before,after,why,world}.yaml`."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from tests.policies.runner import SHIPPED, Run, pods, run, shipped, world
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.policy.podpolicy import PodPolicy

FOLDER = SHIPPED / "examples"


class Why(msgspec.Struct, forbid_unknown_fields=True):
    """What a case claims. Written by hand; its kind keeps `trimtab policies check` from taking it for a policy."""

    apiVersion: Literal["examples.trimtab.dev/v1"]
    kind: Literal["Expectation"]
    says: str
    acts: bool
    because: tuple[str, ...] = ()
    """Every reason code of the policy's decision."""
    would: tuple[str, ...] = ()
    """Every field a policy in mode `warn` would change."""
    beside: tuple[str, ...] = ()
    """Other shipped policies that are in force, too."""


@dataclass(frozen=True)
class Example:
    policy: str
    case: str

    def path(self, part: str) -> Path:
        return FOLDER / self.policy / f"{self.case}.{part}.yaml"

    def __str__(self) -> str:
        return f"{self.policy}/{self.case}"

    @cached_property
    def why(self) -> Why:
        return msgspec.convert(yaml.safe_load(self.path("why").read_text()), Why)

    @cached_property
    def run(self) -> Run:
        """With the policy in force."""
        return self._run(self.policy, *self.why.beside)

    def _run(self, *names: str) -> Run:
        path = self.path("world")
        facts = world(path.read_bytes() if path.exists() else b"")
        ((pod, namespace),) = pods(self.path("before").read_bytes())
        return run(pod, namespace, _named(names), facts)


def outcome(run: Run) -> Any:
    """The stored pod as plain values, or the server's refusal."""
    if isinstance(run.outcome, PodRejected):
        return {"apiVersion": "examples.trimtab.dev/v1", "kind": "Refusal", "refused": str(run.outcome)}
    pod = msgspec.json.decode(msgspec.json.encode(run.outcome.pod))
    return {"apiVersion": "v1", "kind": "Pod", **pod}


def _named(names: tuple[str, ...]) -> tuple[PodPolicy, ...]:
    policies = {policy.name: policy for policy in shipped()}
    return tuple(policies[name] for name in names)


def examples() -> tuple[Example, ...]:
    paths = sorted(FOLDER.glob("*/*.before.yaml"))
    return tuple(Example(path.parent.name, path.name.removesuffix(".before.yaml")) for path in paths)
