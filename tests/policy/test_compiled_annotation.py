"""The annotation by which the webhook recognises what a compiled policy wrote."""

import pytest

from tests.build import container, facts, pod, policies, policy, usage
from trimtab.cluster.api.meta import change
from trimtab.policy.compiled_annotation import COMPILED_PREFIX, find_compiled_policy, is_compiled_request
from trimtab.policy.decide import decide
from trimtab.policy.pod_context import PodContext

FIELD = "containers[app].requests.cpu"


def subject(note, *, cpu="250m"):
    created_pod = pod(container("app", requests={"cpu": cpu}), annotations={f"{COMPILED_PREFIX}web": note})
    return PodContext(pod=created_pod, namespace="team-a")


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        (f"{FIELD}=250m", True),
        (f"placement {FIELD}=0.25", True),
        (f"{FIELD}=300m", False),
        (f"{FIELD}=junk", False),
        ("", False),
        ("containers[other].requests.cpu=250m", False),
        ("=== = x", False),
    ],
)
def test_a_request_is_the_policys_while_it_has_the_value_that_is_named(note, expected):
    one = subject(note)
    assert is_compiled_request(one, one.container_refs[0], "cpu") is expected


def test_the_policy_is_known_by_the_key():
    assert find_compiled_policy(subject(f"{FIELD}=250m"), FIELD) == "web"
    assert find_compiled_policy(subject(""), FIELD) == ""


def test_the_webhook_replaces_what_a_compiled_policy_gave():
    rule = policy("{requests: {cpu: {from: usage, otherwise: 50m}}}", name="web")
    one = pod(container("app", requests={"cpu": "250m"}), owner="Deployment/web")
    ours = change(one, metadata=change(one.metadata, annotations={f"{COMPILED_PREFIX}web": f"{FIELD}=250m"}))
    world = facts(usage(cpu=("10m", "300m")))
    assert [c.after for c in decide(one, policies(rule), world, "team-a").changes] == []
    assert "300m" in [c.after for c in decide(ours, policies(rule), world, "team-a").changes]
