"""Laws: what is found in one pass is what comparing each with each finds."""

from hypothesis import given
from hypothesis import strategies as st

from trimtab.admission.apiserver.pod_classes import merge_tolerations
from trimtab.cluster.api.meta import UNSET, SelectorRequirement
from trimtab.cluster.api.pod import Affinity, NodeAffinity, NodeSelector, NodeSelectorTerm, PodSpec, Toleration
from trimtab.cluster.selectors import requirement_matches
from trimtab.policy.affinity_conflicts import find_contradiction, is_empty

TOLERATIONS = st.builds(
    Toleration,
    key=st.sampled_from(["", "a", "b"]),
    operator=st.sampled_from(["", "Equal", "Exists", "Gt"]),
    value=st.sampled_from(["", "v", "w"]),
    effect=st.sampled_from(["", "NoExecute", "NoSchedule"]),
    toleration_seconds=st.sampled_from([UNSET, 0, 1, 2, -1]),
)


def covers(a, b):
    """`isSuperset` of pkg/util/tolerations, as the server writes it."""
    if a == b:
        return True
    if a.key != b.key and not (a.key == "" and a.operator == "Exists"):
        return False
    lasting = a.effect != "NoExecute" or a.toleration_seconds is UNSET
    if not lasting and (b.toleration_seconds is UNSET or b.toleration_seconds > a.toleration_seconds):
        return False
    if a.effect not in ("", b.effect):
        return False
    if a.operator == "Exists":
        return True
    return a.operator in ("", "Equal") and b.operator == "Equal" and a.value == b.value


@given(st.lists(TOLERATIONS, max_size=7), st.lists(TOLERATIONS, max_size=3))
def test_tolerations_are_merged_as_if_each_were_compared_with_each(first, second):
    every, merged = (*first, *second), []
    for place, one in enumerate(every):
        later = [other for other in every[place + 1 :] if other != one]
        if not any(covers(other, one) for other in (*merged, *later)):
            merged.append(one)
    assert merge_tolerations(tuple(first), tuple(second)) == tuple(merged)


VALUES = ("1", "2", "3", "x")
REQUIREMENTS = st.one_of(
    st.builds(
        lambda key, operator, values: SelectorRequirement(key=key, operator=operator, values=tuple(values)),
        st.sampled_from("kl"),
        st.sampled_from(["In", "NotIn"]),
        st.lists(st.sampled_from(VALUES), min_size=1, max_size=3),
    ),
    st.builds(
        lambda key, operator: SelectorRequirement(key=key, operator=operator),
        st.sampled_from("kl"),
        st.sampled_from(["Exists", "DoesNotExist"]),
    ),
    st.builds(
        lambda key, operator, value: SelectorRequirement(key=key, operator=operator, values=(value,)),
        st.sampled_from("kl"),
        st.sampled_from(["Gt", "Lt"]),
        st.sampled_from(["0", "1", "2"]),
    ),
)
LABELS = (*VALUES, "9", "")
NODES = [{key: value for key, value in (("k", k), ("l", other)) if value} for k in LABELS for other in LABELS]


@given(
    st.dictionaries(st.sampled_from("kl"), st.sampled_from(VALUES), max_size=2),
    st.lists(st.lists(REQUIREMENTS, max_size=3), max_size=3),
    st.lists(REQUIREMENTS, max_size=2),
)
def test_a_contradiction_is_found_only_where_no_node_will_do(selector, written, more):
    terms = tuple(NodeSelectorTerm(match_expressions=tuple(term)) for term in written)
    required = NodeSelector(node_selector_terms=terms) if terms else UNSET
    spec = PodSpec(node_selector=selector, affinity=Affinity(node_affinity=NodeAffinity(required=required)))

    def will_do(node):
        holding = all(node.get(key) == value for key, value in selector.items())
        holding = holding and all(requirement_matches(one, node) for one in more)
        own = [term.match_expressions for term in terms if not is_empty(term)]
        return holding and (not own or any(all(requirement_matches(one, node) for one in term) for term in own))

    if find_contradiction(spec, more):
        assert not any(map(will_do, NODES))
