"""A harmful policy is put to `warn`. A rehearsal offers the same and only says what it would have done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from trimtab.admission.audit.harm import HarmEvidence
from trimtab.kube.client import MERGE
from trimtab.kube.errors import KubeFault
from trimtab.kube.objects import Writer
from trimtab.kube.resources import PLACES, one
from trimtab.runtime.log import Logger


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy of the cluster, as it was when it was judged."""

    name: str
    uid: str
    version: str
    """Its resourceVersion: whoever edits it meanwhile is not overwritten."""


class BrakeActuator(Protocol):
    """What may be done to a policy that harms."""

    def warn(self, policy: Policy, harm: HarmEvidence) -> str:
        """What was done: put-to-warn, told, failed."""


@dataclass(frozen=True, slots=True)
class Brake:
    """The real one."""

    writer: Writer
    log: Logger

    def warn(self, policy: Policy, harm: HarmEvidence) -> str:
        """`spec.mode: warn`, and nothing else. A policy that changed since is judged anew with the next look."""
        body = {
            "metadata": {"resourceVersion": policy.version, "uid": policy.uid},
            "spec": {"mode": "warn"},
        }
        path, doing = one(PLACES["PodPolicy"], "", policy.name), f"put PodPolicy {policy.name} to warn"
        try:
            self.writer.write("PATCH", path, body, doing=doing, content_type=MERGE)
        except KubeFault as error:
            self.log.warning("harm-brake.failed", policy=policy.name, error=str(error), why=str(harm.reason))
            return "failed"
        self.log.warning("harm-brake", policy=policy.name, why=str(harm.reason))
        return "put-to-warn"


@dataclass(slots=True)
class DryRunBrakeActuator:
    """Says so, once per policy and version; changes nothing."""

    log: Logger
    _said: set[str] = field(default_factory=set)

    def warn(self, policy: Policy, harm: HarmEvidence) -> str:
        key = f"{policy.name} {harm.trouble}"
        if key not in self._said:
            self._said.add(key)
            self.log.warning("harm-brake.only-told", policy=policy.name, why=str(harm.reason))
        return "told"
