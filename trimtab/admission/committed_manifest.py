"""Determines what happens to a manifest after its changes were committed: it is admitted again, until nothing changes
any more.

A committed change counts as the author's own. So a policy that matched the pod only without the change may not match
any more, and a policy that was overruled at first may now apply.
"""

from collections.abc import Callable
from copy import deepcopy

from trimtab.admission.pod_templates import PodTemplateLocation, read_templates
from trimtab.admission.preview import Preview, write_changes
from trimtab.cluster.yaml_documents import Document

MAX_COMMITS = 5
"""The maximum number of times that the changes are committed. Without it, policies that contradict each other could
change the same field again at each commit."""


def preview_commits(
    template: PodTemplateLocation, first: Preview, preview: Callable[[PodTemplateLocation], Preview]
) -> tuple[Preview, ...]:
    """Returns the previews to write into the manifest, in this order: the first one, and then one for each commit that
    still changes the pod; at most `MAX_COMMITS` in total."""
    commits: list[Preview] = []
    document, current = template.document, first
    while any(call.operations for call in current.calls) and len(commits) < MAX_COMMITS:
        commits.append(current)
        value = deepcopy(document.value)
        write_changes(value, template.path, current)
        document = Document(file=document.file, index=document.index, value=value)
        locations = (each for each in read_templates(document) if isinstance(each, PodTemplateLocation))
        location = next((each for each in locations if each.path == template.path), None)
        if location is None:
            break
        current = preview(location)
    return tuple(commits)
