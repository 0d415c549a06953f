"""Sets a harmful policy to the mode `warn`; in a dry run, only reports it.

The brake writes the policy's status, and never its spec: the status names the generation of the spec that acts as if
its mode were `warn`. So the watchdog's account needs no permission to change what policies do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from trimtab.admission.audit.harm import HarmEvidence
from trimtab.kube.client import MERGE_PATCH
from trimtab.kube.errors import KubeFault
from trimtab.kube.objects import Writer
from trimtab.kube.resources import LIST_SOURCES, object_path
from trimtab.policy.status import encode_brake
from trimtab.runtime.log import Logger


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy of the cluster, in the version that was judged."""

    name: str
    uid: str
    version: str
    """The policy's resourceVersion: the API server refuses the patch if the policy has been edited since."""
    generation: int = 0
    """The generation of the spec that was judged."""


class BrakeActuator(Protocol):
    """Acts on a policy that harms pods: sets it to `warn`, or only reports it."""

    def set_to_warn(self, policy: Policy, harm: HarmEvidence) -> str:
        """Acts on a harmful policy, and returns what was done: set-to-warn, reported or failed."""


@dataclass(frozen=True, slots=True)
class Brake:
    """Sets harmful policies to `warn` in the cluster."""

    writer: Writer
    log: Logger

    def set_to_warn(self, policy: Policy, harm: HarmEvidence) -> str:
        """Writes the braked generation, and nothing else, and returns what was done. If the policy has changed since it
        was judged, it is judged again in the next round."""
        body = {
            "metadata": {"resourceVersion": policy.version, "uid": policy.uid},
            "status": encode_brake(policy.generation),
        }
        path, operation = (
            object_path(LIST_SOURCES["PodPolicy"], "", policy.name, "status"),
            f"set PodPolicy {policy.name} to warn",
        )
        try:
            self.writer.write("PATCH", path, body, doing=operation, content_type=MERGE_PATCH)
        except KubeFault as error:
            self.log.warning("harm-brake.failed", policy=policy.name, error=str(error), why=str(harm.reason))
            return "failed"
        self.log.warning("harm-brake", policy=policy.name, why=str(harm.reason))
        return "set-to-warn"


@dataclass(slots=True)
class DryRunBrakeActuator:
    """Changes nothing: logs each harmful policy once for each kind of failure."""

    log: Logger
    _reported: set[str] = field(default_factory=set)

    def set_to_warn(self, policy: Policy, harm: HarmEvidence) -> str:
        key = f"{policy.name} {harm.trouble}"
        if key not in self._reported:
            self._reported.add(key)
            self.log.warning("harm-brake.only-reported", policy=policy.name, why=str(harm.reason))
        return "reported"
