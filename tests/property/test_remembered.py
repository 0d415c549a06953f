"""The law of memory: what is answered from it is what would be answered without it, byte by byte."""

from dataclasses import fields, replace

from hypothesis import given
from hypothesis import strategies as st

from tests.build import admission_context, quota, review
from tests.property import strategies as some
from tests.property.drawn_pods import with_token
from trimtab.admission.handler import answer_review
from trimtab.admission.response_cache import ResponseCache
from trimtab.policy.cluster_facts import ClusterFacts

_NAMES = [f.name for f in fields(ClusterFacts)]
_USES = st.builds(
    lambda used, kind: {"team-a": (quota({kind: "2"}, used={kind: used}),)},
    st.sampled_from(["0", "1", "1900m"]),
    st.sampled_from(["requests.cpu", "limits.cpu", "pods"]),
)


@st.composite
def turns(draw):
    """Facts that follow each other: each time some parts are other objects, the rest the very same."""
    results = [draw(some.worlds())]
    for _ in range(draw(st.integers(1, 3))):
        other, parts = draw(some.worlds()), draw(st.sets(st.sampled_from(_NAMES), max_size=4))
        changed = {name: getattr(other, name) for name in parts}
        if draw(st.booleans()):
            changed["quotas"] = draw(_USES)
        results.append(replace(results[-1], **changed))
    return results


@given(
    some.manifests(), some.policies(), turns(), st.lists(st.sampled_from(["aaaaa", "zz9zz"]), min_size=4, max_size=4)
)
def test_an_answer_from_memory_is_the_answer_there_would_be(manifest, by, worlds, tokens):
    memory = ResponseCache()
    for world, token in zip([*worlds, worlds[0]] * 2, tokens * 2, strict=False):
        body = review(with_token(manifest, token), uid=f"u-{token}")
        assert (
            answer_review(body, admission_context(by, world, memory=memory)).body
            == answer_review(body, admission_context(by, world)).body
        )


@given(some.manifests(), some.policies(), some.policies(), some.worlds())
def test_other_policies_are_answered_anew(manifest, first, second, world):
    memory, body = ResponseCache(), review(manifest)
    for by in (first, second, first):
        assert (
            answer_review(body, admission_context(by, world, memory=memory)).body
            == answer_review(body, admission_context(by, world)).body
        )
