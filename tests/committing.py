"""What `trimtab admit -o yaml` prints, for the tests of what is committed."""

from collections.abc import Callable

from trimtab.admission.admission_context import AdmissionContext
from trimtab.admission.committed_manifest import preview_commits
from trimtab.admission.pod_templates import PodTemplateLocation, read_templates
from trimtab.admission.preview import Preview, preview_admission
from trimtab.cluster.yaml_documents import read_documents
from trimtab.inputs.manifests import rewrite_manifests
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.podpolicy import Policies


def previewer(policies: Policies, facts: ClusterFacts) -> Callable[[PodTemplateLocation], Preview]:
    """Returns the preview of a template by these policies."""
    return lambda template: preview_admission(
        template.pod, template.namespace, AdmissionContext(policies=policies, facts=template.with_owners(facts))
    )


def print_committed(text: str, policies: Policies, facts: ClusterFacts) -> str:
    """Returns the manifests with what is committed."""
    contents, preview = [("it.yaml", text.encode())], previewer(policies, facts)
    locations = [
        each
        for document in read_documents(*contents[0]).documents
        for each in read_templates(document)
        if isinstance(each, PodTemplateLocation)
    ]
    return rewrite_manifests(contents, [(each, preview_commits(each, preview(each), preview)) for each in locations])
