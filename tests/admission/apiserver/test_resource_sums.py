from hypothesis import given
from hypothesis import strategies as st

from tests.build import container, pod, resources
from trimtab.admission.apiserver.resource_sums import round_quantities, round_spec
from trimtab.cluster import quantity


def test_d16_what_is_finer_than_a_thousandth_is_rounded_up():
    pod_spec = round_spec(pod(container(requests={"cpu": "250u"}), overhead={"memory": "1n"}).spec)
    assert pod_spec == pod(container(requests={"cpu": "1m"}), overhead={"memory": "1m"}).spec


def test_anything_else_stays_as_it_is_written():
    written = {"cpu": "0.1", "memory": "1024Mi", "nvidia.com/gpu": 1}
    assert round_quantities(written) is written


@given(st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["0", "1n", "250u", "0.0005", "1", "1Mi"])))
def test_rounding_is_by_less_than_a_thousandth_and_once(written):
    resource_list = round_quantities(written)
    assert round_quantities(resource_list) is resource_list
    assert all(0 <= quantity.parse(resource_list[n]) - quantity.parse(v) < 10**6 for n, v in written.items())


def test_resources_that_say_nothing_still_say_nothing():
    spec = pod(container(requests={}), resources=resources(limits={})).spec
    assert round_spec(spec) == spec
