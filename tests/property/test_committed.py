"""The law of `trimtab admit -o yaml`: admitting what it printed changes nothing."""

import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.build import NAMESPACE
from tests.committing import print_committed
from tests.property import strategies as some


def manifest_of(pod, kind):
    metadata = {"namespace": NAMESPACE, "name": "it"}
    if kind == "Pod":
        return {"apiVersion": "v1", "kind": "Pod", **pod, "metadata": {**pod.get("metadata", {}), **metadata}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": {"replicas": 2, "template": pod}}


@given(
    st.lists(some.manifests(), min_size=1, max_size=2),
    some.policies(),
    some.worlds(),
    st.sampled_from(["Pod", "Deployment", "DaemonSet"]),
    st.sampled_from([None, False, True]),
)
def test_admitting_what_was_printed_changes_nothing(pods, by, world, kind, flow):
    text = yaml.safe_dump_all([manifest_of(pod, kind) for pod in pods], default_flow_style=flow, sort_keys=False)
    once = print_committed(text, by, world)
    assert print_committed(once, by, world) == once
