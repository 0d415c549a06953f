"""Gives a pod the changes that a decision made to a similar pod."""

from trimtab.cluster.api.meta import Labels, UnsetType, change, value_or
from trimtab.cluster.api.pod import Container, Pod, PodSpec
from trimtab.policy.changed_annotation import ANNOTATION


def with_changes_of(pod: Pod, before: Pod, after: Pod, annotation: str) -> Pod:
    """Returns the pod with the changes that turned `before` into `after`, and with the text of its own annotation of
    changes. Raises ValueError if the pods are not similar."""
    metadata = pod.metadata
    annotations = _with_changes(metadata.annotations, before.metadata.annotations, after.metadata.annotations)
    metadata = change(
        metadata,
        labels=_with_changes(metadata.labels, before.metadata.labels, after.metadata.labels),
        annotations={**value_or(annotations, {}), ANNOTATION: annotation},
    )
    return change(pod, metadata=metadata, spec=_changed_spec(pod.spec, before.spec, after.spec))


def _with_changes(
    values: Labels | UnsetType, earlier: Labels | UnsetType, changed: Labels | UnsetType
) -> Labels | UnsetType:
    """Returns the values with the changes that turned `earlier` into `changed`; `values` and `earlier` have the same
    keys."""
    if changed is earlier:
        return values
    before, result = value_or(earlier, {}), value_or(changed, {})
    own = value_or(values, {})
    return {key: own[key] if key in own and before.get(key) == value else value for key, value in result.items()}


def _changed_spec(spec: PodSpec, earlier: PodSpec, changed: PodSpec) -> PodSpec:
    """Returns the changed spec with the images and the token volume of this pod; `spec` and `earlier` differ in nothing
    else."""
    if changed is earlier:
        return spec
    volumes = tuple(
        [
            own if before == after else after
            for own, before, after in zip(spec.volumes, earlier.volumes, changed.volumes, strict=True)
        ]
    )
    return change(
        changed,
        volumes=volumes,
        containers=_with_own_images(changed.containers, spec.containers),
        init_containers=_with_own_images(changed.init_containers, spec.init_containers),
    )


def _with_own_images(changed: tuple[Container, ...], own: tuple[Container, ...]) -> tuple[Container, ...]:
    return tuple(
        [
            container if container.image == original.image else change(container, image=original.image)
            for container, original in zip(changed, own, strict=True)
        ]
    )
