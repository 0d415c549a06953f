import pytest

from tests.build import container, pod, quota
from trimtab.cluster.resource_quotas import quota_counting_limit, quota_rejecting_pod


@pytest.mark.parametrize(
    ("scopes", "counts"),
    [
        ((), True),
        (("NotBestEffort",), True),
        (("BestEffort",), False),
        (("NotTerminating",), True),
        (("Terminating",), False),
        (("CrossNamespacePodAffinity",), False),
    ],
)
def test_a_quota_counts_for_the_pods_in_all_its_scopes(scopes, counts):
    limited = pod(container(limits={"cpu": "1"}))
    assert (quota_counting_limit([quota({"limits.cpu": "1"}, scopes=scopes)], limited, "cpu") == "q") is counts


@pytest.mark.parametrize(
    ("hard", "by"),
    [
        ({"limits.cpu": "9"}, "q"),
        ({"requests.cpu": "9"}, None),
        ({"cpu": "9"}, None),
        ({"memory": "9"}, "q"),
        ({"pods": "1"}, None),
    ],
)
def test_a_quota_demands_that_every_container_names_what_it_counts(hard, by):
    assert quota_rejecting_pod([quota(hard)], pod(container(requests={"cpu": "1"}))) == by
