"""`doctor` about the policies that the API server itself carries out."""

from dataclasses import replace
from typing import Any

import pytest

from tests.cli.doctor.worlds import CREATED, UNBOUND, WELL, bad
from trimtab.cli.doctor.command import judge_cluster
from trimtab.diagnosis.cluster_reader import ClusterProbe
from trimtab.inputs.compiled_policy_state import CompiledPolicyState, decode_compiled_policies, read_compiled_policies
from trimtab.kube.errors import ApiStatus, NotFound


def test_without_a_webhook_compiled_policies_that_are_bound_are_the_mode_and_no_fault():
    bound = replace(UNBOUND, is_bound=True)
    assert bad(mutating=(), pod_trial=CREATED, compiled_policies=(bound,)) == {}
    assert "configuration-missing" in bad(mutating=(), compiled_policies=(UNBOUND,))


@pytest.mark.parametrize("compiled", [None, (), (replace(UNBOUND, is_bound=True),)])
def test_beside_the_webhook_compiled_policies_are_no_fault_and_neither_is_a_server_without_them(compiled):
    assert bad(compiled_policies=compiled) == {}


def test_compiled_policies_are_known_by_their_label_and_bound_by_name():
    def named(name: str, **labels: str) -> dict[str, Any]:
        return {"metadata": {"name": name, "labels": labels}}

    policies = [named("trimtab-b", **{"trimtab.dev/policy": "b"}), named("trimtab-a", **{"trimtab.dev/policy": "a"})]
    states = decode_compiled_policies([*policies, named("theirs")], [{"spec": {"policyName": "trimtab-a"}}])
    assert [(state.name, state.is_bound) for state in states] == [("trimtab-a", True), ("trimtab-b", False)]


class OldServer:
    """A client of an API server before Kubernetes 1.36."""

    def get(self, path: str, query: Any = None, *, doing: str = "", accept: str = "") -> bytes:
        raise NotFound(doing, 404, ApiStatus(reason="NotFound", message="could not find the requested resource"))


def test_an_api_server_without_the_kind_has_no_compiled_policies_and_that_is_no_fault():
    client: Any = OldServer()
    states = read_compiled_policies(ClusterProbe(client).list_objects, "MutatingAdmissionPolicy")
    assert states is None
    assert bad(compiled_policies=states) == {}


def test_policies_that_deny_pods_are_named_with_the_way_to_end_that():
    denying = CompiledPolicyState(name="trimtab-requires-kata", is_bound=True, policy="kata", is_denying=True)
    warning = replace(denying, name="trimtab-requires-gold", is_denying=False)
    cluster = replace(WELL, validating_policies=(denying, warning))
    texts = [
        result.finding.reason.sentence for result in judge_cluster(cluster) if result.check.name == "compiled-policies"
    ]
    assert "trimtab-requires-kata denies pods" in texts[0]
    assert "kubectl delete validatingadmissionpolicybinding trimtab-requires-kata" in texts[0]
    assert not any("gold" in text for text in texts)
    assert bad(validating_policies=(denying, warning)) == {}
