"""What would this owner's next pod ask for, were it created now?

The pod as its controller would send it, through the API server's two passes with today's policies and facts.
"""

from trimtab.admission.apiserver.outcome import Stored
from trimtab.admission.preview import Preview, preview
from trimtab.cluster.api.meta import OwnerReference, change
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.api.workload import PodTemplate
from trimtab.cluster.owner import Owner
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.resources import Amounts, pod_requests
from trimtab.policy.document import Policies
from trimtab.policy.facts import Facts
from trimtab.policy.subject import DEFAULT_TERMS, Terms


def readmitted(
    template: PodTemplate, owner: Owner, namespace: str, policies: Policies, facts: Facts, terms: Terms = DEFAULT_TERMS
) -> Amounts | Unreadable:
    """What the scheduler would count; Unreadable where there would be no such pod, and who says so."""
    where = f"the next pod of {owner.kind} {namespace}/{owner.name}"
    found = preview(_sent(template, owner, namespace), policies, facts, namespace, terms)
    denied = next((call.decision.denied for call in found.calls if call.decision.denied is not None), None)
    if denied is not None:
        return Unreadable(where, f"a policy denies it: {denied}")
    # A quota counts the pod that would go, too: what the server itself would refuse was asked of it before.
    last = found.result.pod if isinstance(found.result, Stored) else _decided(found)
    try:
        return pod_requests(last.spec)
    except NotAQuantity as error:
        return Unreadable(where, str(error))


def _decided(found: Preview) -> Pod:
    """What we made of it, where the server then refused it."""
    return found.calls[-1].applied(found.seen[-1]) if found.calls else found.sent


def _sent(template: PodTemplate, owner: Owner, namespace: str) -> Pod:
    """As the controller sends it. A StatefulSet's pod has a name of its own, all others one of chance."""
    meta, above = template.metadata, OwnerReference(kind=owner.kind, name=owner.name, controller=True)
    named = change(
        meta, name=f"{owner.name}-0" if owner.kind == "StatefulSet" else "", generate_name=f"{owner.name}-",
        namespace=namespace, owner_references=(above,),
    )  # fmt: skip
    return Pod(metadata=named, spec=template.spec)
