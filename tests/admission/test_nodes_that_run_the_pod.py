"""Whether a node could run the changed pod: also by operating system, by runtime handler, and on serverless nodes."""

from typing import Any

from tests.build import NAMESPACE, container, facts, pod, policies, policy, runtime_class
from trimtab.admission.pod_decision import decide_pod
from trimtab.cluster.api.core import Node, NodeSpec, NodeStatus, NodeSystemInfo, RuntimeHandler
from trimtab.cluster.api.meta import Metadata
from trimtab.cluster.api.pod import PodOS
from trimtab.policy.pod_context import PodContext

SANDBOX = "{runtimeClass: {name: kata}}"
FARGATE = {"labels": {"eks.amazonaws.com/compute-type": "fargate"}}


def node(name: str, *handlers: str, system: str = "", cpu: str = "8", pods: str = "110", labels: Any = None) -> Node:
    amounts = {"cpu": cpu, "memory": "32Gi", "pods": pods}
    return Node(
        metadata=Metadata(name=name, labels=labels or {}),
        spec=NodeSpec(),
        status=NodeStatus(
            allocatable=amounts,
            capacity=amounts,
            node_info=NodeSystemInfo(operating_system=system),
            runtime_handlers=tuple(RuntimeHandler(name=one) for one in handlers) or None,
        ),
    )


def loud_codes(actions: str, *objects: Any, cpu: str = "1", **spec: Any) -> list[str]:
    submitted = pod(container(requests={"cpu": cpu}), **spec)
    result = decide_pod(
        PodContext(pod=submitted, namespace=NAMESPACE, facts=facts(*objects)), policies(policy(actions))
    )
    return [kept_field.reason.code.name for kept_field in result.decision.fields_kept if kept_field.loud]


def test_a_sandbox_whose_handler_no_node_reports_is_not_given() -> None:
    plain = (node("a", "", "runc"), node("b", "", "runc"))
    assert loud_codes(SANDBOX, *plain, runtime_class("kata")) == ["no-node-could-run-it"]
    assert loud_codes(SANDBOX, *plain, node("c", "", "kata"), runtime_class("kata")) == []


def test_a_node_that_reports_no_handlers_may_have_the_one_of_the_sandbox() -> None:
    assert loud_codes(SANDBOX, node("a"), runtime_class("kata")) == []


LANE = "{placement: {nodeSelector: {lane: fast}}}"


def test_a_placement_on_another_operating_system_is_not_given() -> None:
    nodes = (node("lin", system="linux"), node("win", system="windows", labels={"lane": "fast"}))
    assert loud_codes(LANE, *nodes, os=PodOS(name="linux")) == ["no-node-could-run-it"]
    assert loud_codes(LANE, *nodes) == []


def test_a_serverless_node_can_hold_a_pod() -> None:
    virtual = node("v", cpu="1000", labels={"type": "virtual-kubelet", "lane": "fast"})
    assert loud_codes(LANE, node("a"), virtual) == []


def test_a_platform_that_makes_a_node_for_each_pod_can_hold_one_of_any_size() -> None:
    small = node("f", cpu="250m", pods="1", labels={**FARGATE["labels"], "lane": "fast"})
    assert loud_codes(LANE, node("a"), small, cpu="4") == []
