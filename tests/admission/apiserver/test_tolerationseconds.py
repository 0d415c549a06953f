import pytest

from tests.build import NAMESPACE, facts, pod, toleration
from trimtab.admission.apiserver import pod_classes
from trimtab.cluster.api.pod import Toleration

NOT_READY, UNREACHABLE = (
    Toleration(key=f"node.kubernetes.io/{state}", operator="Exists", effect="NoExecute", toleration_seconds=300)
    for state in ("not-ready", "unreachable")
)


@pytest.mark.parametrize(
    ("own", "added"),
    [
        ((), (NOT_READY, UNREACHABLE)),
        ((toleration("pool", "a"),), (NOT_READY, UNREACHABLE)),
        ((toleration("node.kubernetes.io/not-ready", operator="Exists"),), (UNREACHABLE,)),
        ((toleration("node.kubernetes.io/not-ready", effect="NoSchedule"),), (NOT_READY, UNREACHABLE)),
        ((toleration(operator="Exists", effect="NoSchedule"),), (NOT_READY, UNREACHABLE)),
        ((toleration(operator="Exists"),), ()),
    ],
)
def test_both_taints_are_tolerated_for_five_minutes_unless_the_pod_speaks_of_them(own, added):
    created_pod = pod_classes.admit_toleration_seconds(pod(tolerations=own), facts(), NAMESPACE)
    assert created_pod == pod(tolerations=own + added)
