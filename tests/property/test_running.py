"""A law of running pods: who came through with today's policies and facts lacks nothing of them."""

from hypothesis import assume, given

from tests.admission.audit.worlds import held, looked, registered
from tests.build import NAMESPACE, decided
from tests.property import strategies as some
from trimtab.admission.apiserver import admission_chain
from trimtab.admission.apiserver.outcome import PodAdmitted
from trimtab.cluster.api.meta import change


@given(some.pods(), some.policies(), some.worlds())
def test_a_pod_that_was_just_admitted_lacks_nothing(pod, by, world):
    assume(not pod.spec.node_name)  # one sent with its node cannot be told from one that the scheduler placed
    admission = admission_chain.run_admission_chain(pod, world, NAMESPACE, lambda sent: decided(sent, by, world).pod)
    assume(isinstance(admission, PodAdmitted))
    meta = change(admission.pod.metadata, namespace=NAMESPACE, creation_timestamp="2026-11-21T00:00:00Z")
    status = change(admission.pod.status, phase="Running")
    stored = change(admission.pod, metadata=meta, status=status, spec=change(admission.pod.spec, node_name="n1"))
    audit_state = looked(held(stored), by, world, registered(**{p.name.replace("-", "_"): 0 for p in by.all}))
    assert [(one.policy, one.changes) for one in audit_state.unpatched] == []
    assert audit_state.overhead == ()
