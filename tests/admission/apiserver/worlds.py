"""Pods and LimitRanges by the hundred, of the kinds that make the server's steps work."""

from hypothesis import strategies as st

from tests.build import container, limit_range, pod, quota, resources, runtime_class, toleration
from trimtab.cluster.api.meta import UNSET

_CPU = st.sampled_from(["50m", "0.1", "500m", "1", "2"])
_MEMORY = st.sampled_from(["64Mi", "100M", "0.5Gi", "1Gi", "1e9"])
_PARTS = {"cpu": _CPU, "memory": _MEMORY}


def lists():
    return st.none() | st.fixed_dictionaries({}, optional=_PARTS)


def containers(name: str):
    policies = st.sampled_from(["", "Always"])
    return st.builds(container, st.just(name), requests=lists(), limits=lists(), restart_policy=policies)


def pods():
    """Often valid, never unreadable."""
    tolerations = st.lists(
        st.builds(
            toleration,
            st.sampled_from(["k", "z"]),
            st.sampled_from(["", "v"]),
            st.sampled_from(["", "NoExecute"]),
            operator=st.sampled_from(["", "Equal"]),
        ),
        max_size=3,
    ).map(tuple)
    return st.builds(
        pod,
        containers("app"),
        init=st.just(()) | st.tuples(containers("init")),
        resources=st.just(UNSET) | st.builds(resources, requests=lists(), limits=lists()),
        runtime_class_name=st.sampled_from([UNSET, "kata", "plain"]),
        node_selector=st.sampled_from([UNSET, {}, {"pool": "kata"}]),
        tolerations=st.just(UNSET) | tolerations,
    )


def limit_ranges():
    part = st.fixed_dictionaries({}, optional=_PARTS)
    return st.builds(limit_range, default=part, default_request=part, max=part, min=part)


def objects():
    """What `facts` may be made of: two classes, and perhaps a LimitRange or a quota."""
    classes = (
        runtime_class("kata", overhead={"cpu": "250m"}, node_selector={"pool": "kata"}, tolerations=(_KATA,)),
        runtime_class("plain"),
    )
    rules = st.lists(limit_ranges(), max_size=1)
    quotas = st.lists(st.builds(quota, st.fixed_dictionaries({}, optional={"limits.cpu": _CPU})), max_size=1)
    return st.tuples(rules, quotas).map(lambda result: (*classes, *result[0], *result[1]))


_KATA = toleration("k", operator="Exists")
