"""Acceptance cases, section C: dedicated pools."""

from tests.build import admission_context, changed, codes, container, decided, pod, policies, policy, review, toleration
from trimtab.admission.handler import answer_review
from trimtab.cluster.api.meta import SelectorRequirement
from trimtab.cluster.api.pod import Affinity, NodeAffinity, NodeSelector, NodeSelectorTerm
from trimtab.policy.cluster_facts import ClusterFacts

BATCH = policies(
    policy(
        "{placement: {require: [{label: pool, in: [batch]}],"
        " tolerate: [{key: pool, value: batch, effect: NoSchedule}]}}"
    )
)
POOL = SelectorRequirement(key="pool", operator="In", values=("batch",))
HOST = SelectorRequirement(key="kubernetes.io/hostname", operator="Exists")


def affinity(*terms: NodeSelectorTerm) -> Affinity:
    return Affinity(node_affinity=NodeAffinity(required=NodeSelector(node_selector_terms=terms)))


def term(*expressions: SelectorRequirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=expressions)


def required(result):
    return result.pod.spec.affinity.node_affinity.required.node_selector_terms


def test_c2_an_expression_is_added_to_the_term_that_is_there():
    decision = decided(pod(affinity=affinity(term(HOST))), BATCH)
    assert required(decision) == (term(HOST, POOL),)


def test_c4_an_expression_that_is_there_is_not_added_again():
    tolerant = pod(affinity=affinity(term(HOST, POOL)), tolerations=(toleration("pool", "batch", "NoSchedule"),))
    assert decided(tolerant, BATCH).pod is tolerant


def test_c7_an_empty_term_stays_empty():
    decision = decided(pod(affinity=affinity(term(HOST), NodeSelectorTerm())), BATCH)
    assert required(decision) == (term(HOST, POOL), NodeSelectorTerm())


def test_c7_a_pod_whose_terms_are_all_empty_matches_no_node_and_is_left_alone():
    decision = decided(pod(affinity=affinity(NodeSelectorTerm())), BATCH)
    assert codes(decision, loud=True) == {"contradiction"}


def test_c9_two_requirements_stay_in_one_term():
    here = SelectorRequirement(key="kubernetes.io/hostname", operator="In", values=("n1",))
    decision = decided(pod(affinity=affinity(term(here))), BATCH)
    assert required(decision) == (term(here, POOL),)


def test_c10_a_node_selector_that_contradicts_the_pool_is_told_and_nothing_is_placed():
    decision = decided(pod(node_selector={"pool": "web"}), BATCH)
    assert (changed(decision), codes(decision, loud=True)) == ({}, {"contradiction"})


def test_c11_a_toleration_for_the_whole_key_is_enough():
    decision = decided(pod(tolerations=(toleration("pool", operator="Exists"),)), BATCH)
    assert list(changed(decision)) == ["nodeAffinity.required[pool]"]


def test_c12_a_pod_that_names_its_node_is_not_placed():
    decision = decided(pod(node_name="n1"), BATCH)
    assert (changed(decision), codes(decision)) == ({}, {"node-name-set"})


def test_c14_what_is_added_to_a_list_is_an_entry_and_not_a_list():
    spec = {"containers": [{"name": "app", "image": "a"}], "tolerations": [{"key": "x", "operator": "Exists"}]}
    result = answer_review(
        review({"metadata": {"name": "web"}, "spec": spec}), admission_context(BATCH, ClusterFacts())
    )
    added = [operation for operation in result.record.patch_operations if operation["path"] == "/spec/tolerations/-"]
    assert added == [
        {"op": "add", "path": "/spec/tolerations/-", "value": toleration_of("pool", "batch", "NoSchedule")}
    ]


def toleration_of(key: str, value: str, effect: str) -> dict[str, str]:
    return {"key": key, "operator": "Equal", "value": value, "effect": effect}


def test_a_toleration_is_not_given_without_its_affinity():
    decision = decided(pod(container(), node_selector={"pool": "web"}), BATCH)
    assert decision.pod.spec.tolerations == pod().spec.tolerations
