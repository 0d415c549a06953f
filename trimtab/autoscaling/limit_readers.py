"""Finds out what in a workload reads a container's limit. A rule does not advise to remove such a limit."""

from trimtab.autoscaling.lint_snapshot import LintWorkload
from trimtab.autoscaling.objects import LintContainer
from trimtab.cluster.runtime_patterns import MEMORY
from trimtab.cluster.runtime_signs import LimitReader, add_label_signs, container_signs, find_limit_use
from trimtab.policy.actions.limits import (
    env_limit_fields,
    find_memory_volume_reader,
    find_reference_reader,
    volume_limit_fields,
)


def find_limit_reader(workload: LintWorkload, container: LintContainer, resource: str) -> LimitReader | None:
    """Returns what reads this limit of the container: the downward API, the kubelet for a volume in memory, or the
    container's language runtime."""
    spec = workload.spec
    env_fields = (field for one in (*spec.containers, *spec.init_containers) for field in env_limit_fields(one))
    reader = find_reference_reader(
        (container.name, f"limits.{resource}"), volume_limit_fields(spec.volumes), env_fields
    )
    if reader is None and resource == MEMORY:
        reader = find_memory_volume_reader(spec.volumes)
    if reader is not None:
        return reader
    signs = container_signs(container.runtime_signs, container.image)
    use = find_limit_use(add_label_signs(signs, workload.pod_labels, workload.pod_annotations), resource)
    return use if isinstance(use, LimitReader) else None
