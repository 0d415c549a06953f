"""The number of usage that a policy's `rule` selects, and its bounds."""

from typing import Any

import msgspec
import pytest

from tests.build import NAMESPACE, changed, container, decided, facts, pod, policies, policy
from tests.reasons import has_facts
from trimtab.cluster.api.meta import Metadata
from trimtab.cluster.recommendation import PAYLOAD_KEY, RECOMMENDATIONS_LABEL, ContainerUsage, Percentiles, encode
from trimtab.cluster.snapshot import ConfigMap
from trimtab.policy.load import load_policies

MEMORY = "containers[app].requests.memory"


def known(**more: Any) -> Any:
    """A recommendation of memory with everything that the adaptive rule publishes."""
    record = Percentiles(
        p5="100Mi",
        p50="200Mi",
        p90="300Mi",
        p95="400Mi",
        p99="500Mi",
        max="800Mi",
        request="450Mi",
        share=0.98,
        passed=3,
        record=9,
        confidence=1.0,
    )
    return msgspec.structs.replace(record, **more)


def asked(rule: str, amount: str | None = None, **more: Any) -> Any:
    text = f"{{requests: {{memory: {{when: always, otherwise: 55Mi, {rule}}}}}}}"
    world = facts(usage_of(known(**more)))
    requests = {"memory": amount} if amount else {}
    return decided(pod(container(requests=requests), owner="Deployment/web"), policies(policy(text)), world)


def usage_of(usage_record: Percentiles) -> ConfigMap:
    workloads = {f"{NAMESPACE}/Deployment/web": {"app": ContainerUsage(memory=usage_record, days=14, confidence=1.0)}}
    metadata = Metadata(
        name="trimtab-recommendations-00", namespace="trimtab-system", labels={RECOMMENDATIONS_LABEL: "v1"}
    )
    return ConfigMap(metadata=metadata, data={PAYLOAD_KEY: encode(workloads)})


@pytest.mark.parametrize(
    ("rule", "request_"),
    [
        ("min: 1Mi", "450Mi"),
        ("rule: adaptive", "450Mi"),
        ("rule: p95", "400Mi"),
        ("rule: max", "800Mi"),
        ("rule: p99 +10%", "550Mi"),
        ("rule: +10%", "495Mi"),
    ],
)
def test_the_rule_chooses_the_number(rule: str, request_: str) -> None:
    assert changed(asked(rule))[MEMORY] == request_


def test_the_reason_says_which_percentile_and_why() -> None:
    messages = " ".join(str(one.reason) for one in asked("rule: adaptive").changes)
    assert has_facts(messages, "P98", "P95", "3 of 9", "14 days", "450Mi")


@pytest.mark.parametrize("rule", ["rule: p95", "rule: adaptive", "rule: p50"])
def test_no_rule_goes_below_what_a_killed_container_needs(rule: str) -> None:
    result = asked(rule, floor="615Mi", kills=2, killed=1_772_323_200)
    assert (changed(result)[MEMORY], [c.reason.code.name for c in result.changes]) == ("615Mi", ["oom-killed"])
    assert has_facts(" ".join(str(c.reason) for c in result.changes), "killed", "memory", "2 times", "2026-03-01")


def test_the_largest_pod_counts_where_the_policy_says_so() -> None:
    differ = {"signs": ("pods-differ",), "pod": "web-0", "pod_use": "8Gi"}
    assert changed(asked("pods: typical", **differ))[MEMORY] == "450Mi"
    assert changed(asked("pods: largest", **differ))[MEMORY] == "8Gi"


@pytest.mark.parametrize(
    ("rule", "signs", "more"),
    [("pods: largest", ("pods-differ",), {"pod": "web-0", "pod_use": "8Gi"}), ("rule: max", ("rare-peaks",), {})],
)
def test_a_rule_that_covers_what_was_doubtful_may_lower_a_request(rule: str, signs: Any, more: dict[str, str]) -> None:
    result = asked(rule, "20Gi", signs=signs, confidence=0.45, **more)
    assert changed(result)[MEMORY] == ("8Gi" if more else "800Mi")
    assert "does not cover" not in " ".join(str(one.reason) for one in result.changes)
    assert changed(asked("rule: adaptive", "20Gi", signs=signs, confidence=0.45, **more)) == {}


@pytest.mark.parametrize(("written", "request_"), [(None, "450Mi"), ("300Mi", "450Mi"), ("400Mi", None), ("2Gi", None)])
def test_a_young_history_fills_or_raises_and_never_lowers(written: str | None, request_: str | None) -> None:
    result = asked("rule: adaptive", written, young=True, confidence=0.01)
    assert changed(result).get(MEMORY) == request_


@pytest.mark.parametrize("rule", ["p97", "p0", "fast", "p99 +2000%"])
def test_a_rule_that_recommendations_cannot_answer_is_refused(rule: str) -> None:
    loaded = load_policies([("p.yaml", policy(f"{{requests: {{memory: {{rule: '{rule}'}}}}}}").encode())])
    assert loaded.mistakes
