"""The sentence of a placement that no node satisfies names the labels that no node has, or the taints.

Whether such a placement is taken back is tested in `test_pod_decision.py`.
"""

import pytest

from tests.build import NAMESPACE, container, facts, node, pod, policies, policy
from trimtab.admission.pod_decision import decide_pod
from trimtab.cluster.api.core import Taint
from trimtab.policy.pod_context import PodContext

RESERVED = Taint(key="big", value="yes", effect="NoSchedule")
TAINTED = {"labels": {"pool": "batch"}, "cpu": "8", "memory": "32Gi"}
ZONE_AND_POOL = "{placement: {require: [{label: zone, in: [a]}, {label: pool, in: [batch]}]}}"


def reported_reason(actions, *nodes):
    finding = decide_pod(
        PodContext(pod=pod(container(requests={"cpu": "1"})), namespace=NAMESPACE, facts=facts(*nodes)),
        policies(policy(actions)),
    )
    [reason] = [kept_field.reason for kept_field in finding.decision.fields_kept if kept_field.loud]
    return reason


@pytest.mark.parametrize(
    ("actions", "there", "sentence"),
    [
        ("{placement: {require: [{label: pool, in: [spot, b]}]}}", [], "no node has the label pool in [spot, b]"),
        ("{placement: {nodeSelector: {pool: spot}}}", [], "no node has the label pool in [spot]"),
        ("{placement: {require: [{label: pool, exists: true}]}}", [], "no node has the label pool"),
        (
            "{placement: {requireAny: [[{label: pool, in: [a]}], [{label: zone, in: [b]}]]}}",
            [],
            "no node has the label pool in [a] or the label zone in [b]",
        ),
        (
            "{placement: {require: [{label: pool, in: [batch]}]}}",
            [node("t", taints=(RESERVED,), **TAINTED)],
            "every node that has the required labels has a taint that the pod does not tolerate: big=yes:NoSchedule",
        ),
        (
            ZONE_AND_POOL,
            [node("t", **TAINTED), node("z", labels={"zone": "a"}, cpu="8", memory="32Gi")],
            "no single node has the label zone in [a] and the label pool in [batch]",
        ),
    ],
)
def test_the_labels_or_taints_that_no_node_has_are_named(actions, there, sentence):
    reason = reported_reason(actions, node("other", cpu="8", memory="32Gi"), *there)
    assert (reason.code.name, reason.sentence) == ("no-node-could-run-it", sentence)


def test_the_sentence_about_missing_labels_stays_short():
    values = ", ".join(f"{'v' * 60}{n}" for n in range(40))
    required = ", ".join(f"[{{label: pool{n}, in: [{values}]}}]" for n in range(9))
    reason = reported_reason(f"{{placement: {{requireAny: [{required}]}}}}", node(cpu="8", memory="32Gi"))
    assert len(reason.sentence) < 700
