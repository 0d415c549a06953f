from tests.build import NAMESPACE, container, facts, pod
from trimtab.admission.apiserver import defaulting
from trimtab.admission.apiserver.outcome import PodRejected


def test_what_is_no_quantity_is_a_bad_request():
    created_pod = defaulting.check_quantities(pod(container(limits={"cpu": "abc"})), facts(), NAMESPACE)
    assert isinstance(created_pod, PodRejected)
    assert (created_pod.code, "quantities must match" in created_pod.message) == (400, True)


def test_quantities_stay_as_they_are_written():
    written = pod(container(requests={"cpu": "0.1", "memory": "1024Mi"}), overhead={"cpu": 1})
    assert defaulting.check_quantities(written, facts(), NAMESPACE) is written
