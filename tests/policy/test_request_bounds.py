"""The law of requests from usage in a namespace with bounds: the API server accepts them from the webhook if it accepts
the pod from its author, and a second call changes nothing."""

from typing import Any

from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.build import (
    NAMESPACE,
    changed,
    container,
    decided,
    facts,
    limit_range,
    pod,
    policies,
    policy,
    resources,
    stored,
    usage,
    vpa,
    workload,
)
from trimtab.admission.apiserver.outcome import PodAdmitted, PodRejected
from trimtab.admission.resource_refusal import refuse_resources
from trimtab.cluster.api.autoscaling import ContainerPolicy

AMOUNTS = ("100m", "1", "2", "3")
ORDER = {text: number for number, text in enumerate(AMOUNTS)}
amounts = st.sampled_from(AMOUNTS)
POLICY = policies(policy("{requests: {cpu: {when: always}}}"))
KEEPING = policies(policy("{requests: {cpu: {when: always}}, limits: {cpu: remove}}"))


def ordered(*texts: str) -> list[str]:
    return sorted(texts, key=ORDER.__getitem__)


@st.composite
def limit_ranges(draw: st.DrawFn) -> Any:
    low, middle, high = ordered(draw(amounts), draw(amounts), draw(amounts))
    bounds = {"min": low, "default": middle, "max": high, "max_limit_request_ratio": draw(st.sampled_from(("1", "2")))}
    kind = draw(st.sampled_from(("Container", "Container", "Pod")))
    of_pods = (("max_limit_request_ratio",), ("max",), ("min", "max_limit_request_ratio"))
    names = draw(st.sampled_from(of_pods if kind == "Pod" else (*of_pods, ("default",), ("min", "default", "max"))))
    return limit_range(kind=kind, **{name: {"cpu": bounds[name]} for name in names})


SIZES = (("2", "3"), ("1", "1"), ("1", "2"), ("100m", "3"), ("2", ""), ("", "3"), ("", ""))
"""(request, limit); empty: none."""


def sized(request: str, limit: str) -> dict[str, dict[str, str]]:
    return {side: {"cpu": text} for side, text in (("requests", request), ("limits", limit)) if text}


containers = st.sampled_from([sized(*size) for size in SIZES])
whole_pods = st.sampled_from((None, None, None, sized("3", ""), sized("3", "3"), sized("", "3")))


@st.composite
def worlds(draw: st.DrawFn) -> Any:
    low, high = ordered(draw(amounts), draw(amounts))
    bounds = draw(st.sampled_from(({"max_allowed": low}, {"min_allowed": low}, {})))
    one = ContainerPolicy(controlled_values="RequestsOnly", **{name: {"cpu": text} for name, text in bounds.items()})
    seen = usage(cpu=(low, high), memory=("300Mi", "700Mi"))
    others = draw(st.sampled_from(((vpa(policies=(one,)),), ())))
    return facts(seen, workload("Deployment/web", replicas=3), *draw(st.lists(limit_ranges(), max_size=2)), *others)


CAPPED = ContainerPolicy(controlled_values="RequestsOnly", max_allowed={"cpu": "1"})
"""Below what a ratio of 2 requires of a limit of 3."""


@example(
    sized("2", "3"),
    None,
    None,
    facts(
        usage(cpu=("1", "3"), memory=("300Mi", "700Mi")),
        workload("Deployment/web", replicas=3),
        vpa(policies=(CAPPED,)),
        limit_range(max_limit_request_ratio={"cpu": "2"}),
    ),
    POLICY,
)
@given(containers, st.none() | containers, whole_pods, worlds(), st.sampled_from((POLICY, KEEPING)))
def test_a_request_from_usage_is_accepted_and_final(one, other, pod_level, world, by):
    whole = {} if pod_level is None else {"resources": resources(**pod_level)}
    others = () if other is None else (container("proxy", **other),)
    written = pod(container(**one), *others, owner="Deployment/web", **whole)
    assume(refuse_resources(written, world, NAMESPACE) is None)
    result = stored(written, by, world)
    assert isinstance(result, PodAdmitted), result.message if isinstance(result, PodRejected) else ""
    assert changed(decided(result.pod, by, world)) == {}
