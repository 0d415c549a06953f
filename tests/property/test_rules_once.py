"""What we say a namespace's rules refuse is what the server's plugins refuse: there is one reading of each rule."""

from hypothesis import given
from hypothesis import strategies as st

from tests.build import NAMESPACE, facts
from tests.property import strategies as some
from tests.property.drawn_outcomes import tight_quotas
from tests.property.drawn_worlds import limit_ranges, quotas
from trimtab.admission.apiserver import limitranger, resourcequota
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.cluster.limit_ranges import limit_range_broken_by_pod
from trimtab.cluster.resource_quotas import quota_rejecting_pod

PODS = some.manifests().map(some.read)
RANGES = limit_ranges("bounds")


@given(PODS, RANGES)
def test_sums_that_we_say_break_a_limit_range_are_those_that_limit_ranger_refuses(pod, bounds):
    items = [item for item in bounds.spec.limits if item.type == "Pod"]
    bounded = {name for item in items for of in (item.min, item.max, item.max_limit_request_ratio) for name in of}
    ours = any(limit_range_broken_by_pod([bounds], pod.spec, resource) for resource in bounded)
    if items:
        assert isinstance(limitranger.check_limit_ranges(pod, facts(bounds), NAMESPACE), PodRejected) is ours


@given(PODS, st.one_of(quotas("team"), tight_quotas("team")))
def test_what_we_say_a_quota_demands_is_what_its_plugin_demands(pod, rule):
    created_pod = resourcequota.check_quotas(pod, facts(rule), NAMESPACE)
    demands = isinstance(created_pod, PodRejected) and "must specify" in created_pod.message
    assert (quota_rejecting_pod([rule], pod) is not None) is demands
