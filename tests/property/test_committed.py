"""The law of `trimtab admit -o yaml`: admitting what it printed changes nothing."""

import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.build import NAMESPACE
from tests.property import strategies as some
from trimtab.admission.committed_manifest import preview_commits
from trimtab.admission.pod_templates import PodTemplateLocation, read_templates
from trimtab.admission.preview import preview_admission
from trimtab.cli.manifests import rewrite_manifests
from trimtab.cluster.yaml_documents import read_documents


def manifest_of(pod, kind):
    metadata = {"namespace": NAMESPACE, "name": "it"}
    if kind == "Pod":
        return {"apiVersion": "v1", "kind": "Pod", **pod, "metadata": {**pod.get("metadata", {}), **metadata}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": {"replicas": 2, "template": pod}}


def printed(text, by, world):
    """The text of `-o yaml`, and how many of its documents came out otherwise."""
    contents = [("it.yaml", text.encode())]
    documents = read_documents(*contents[0]).documents
    found = [
        each for document in documents for each in read_templates(document) if isinstance(each, PodTemplateLocation)
    ]

    def preview(template):
        return preview_admission(template.pod, by, template.with_owners(world), NAMESPACE)

    return rewrite_manifests(contents, [(each, preview_commits(each, preview(each), preview)) for each in found])


@given(
    st.lists(some.manifests(), min_size=1, max_size=2), some.policies(), some.worlds(),
    st.sampled_from(["Pod", "Deployment", "DaemonSet"]), st.sampled_from([None, False, True]),
)  # fmt: skip
def test_admitting_what_was_printed_changes_nothing(pods, by, world, kind, flow):
    text = yaml.safe_dump_all([manifest_of(pod, kind) for pod in pods], default_flow_style=flow, sort_keys=False)
    once = printed(text, by, world)
    assert printed(once, by, world) == once
