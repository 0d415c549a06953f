"""Running pods in three lines: admitted with or without us, then stored, named, placed and dated by the cluster."""

from typing import Any

from tests.build import NAMESPACE, owners, policies, policy
from trimtab.admission.apiserver.outcome import Stored
from trimtab.admission.apiserver.passes import admit
from trimtab.admission.running.report import Findings, findings
from trimtab.admission.running.submitted import Held, Reader
from trimtab.admission.running.survey import Survey, World
from trimtab.admission.running.why import Since
from trimtab.cluster.api.meta import change
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.moment import written
from trimtab.policy.decide import decide
from trimtab.policy.document import Policies
from trimtab.policy.facts import Facts
from trimtab.policy.subject import DEFAULT_TERMS, Terms

SIZES = policy("{requests: {cpu: {from: policy, otherwise: 50m}}}", name="sizes")
NOTHING = policies()
DAY = 1_790_000_000
"""A moment in 2026."""


def admitted(
    pod: Pod, by: Policies = NOTHING, world: Facts | None = None, *, number: int = 0, created: int = DAY,
    terms: Terms = DEFAULT_TERMS, owner: str = "ReplicaSet/web-5d8f", **server: Any,
) -> Pod:  # fmt: skip
    """The pod as the cluster shows it some time after its creation, one of several from one template."""
    world = world or Facts()
    meta = change(pod.metadata, name="", generate_name="web-5d8f-", namespace="", owner_references=owners(owner))
    found = admit(
        change(pod, metadata=meta), world, NAMESPACE,
        lambda sent: decide(sent, by, world, NAMESPACE, terms).pod, **server,
    )  # fmt: skip
    assert isinstance(found, Stored), found
    named = change(
        found.pod.metadata, name=f"web-5d8f-{'bcdfghjklm'[number]}bcdf", namespace=NAMESPACE,
        uid=f"uid-{number}-{created}", creation_timestamp=written(created),
    )  # fmt: skip
    status = change(found.pod.status, phase="Running")
    return change(found.pod, metadata=named, spec=change(found.pod.spec, node_name=f"n{number}"), status=status)


def held(*pods: Pod) -> list[Held]:
    reader = Reader()
    return [reader(pod) for pod in pods]


def looked(
    pods: list[Held], by: Policies, world: Facts | None = None, since: Since | None = None,
    terms: Terms = DEFAULT_TERMS,
) -> Findings:  # fmt: skip
    """One look by somebody who has seen nothing before."""
    standing = World(policies=by, facts=world or Facts(), terms=terms)
    return findings(Survey().look(pods, standing), standing, since or registered())


def registered(**policies: int) -> Since:
    """Our webhook was there long before; policies were written when it is said."""
    return Since(policies={name: float(at) for name, at in policies.items()}, webhook=DAY - 10**6)
