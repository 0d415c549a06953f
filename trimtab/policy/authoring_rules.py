"""Rules for policies that are written now. A stored policy that breaks one stays in force, because the pods that it
holds must not lose it with an upgrade; `lint` has a finding for it, and the webhook counts it.

A required action must hold for every author of pods, so nothing that an author decides may exempt a pod
(`trimtab.policy.field_deciders`). An image says nothing about who wrote the pod: its author can spell it in other ways
that pull the same content, by a mirror or a digest, or add a container whose image is trusted.
"""

from collections.abc import Iterator

from pydantic.alias_generators import to_camel

from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.yaml_documents import Document
from trimtab.policy.conditions import Conditions
from trimtab.policy.field_deciders import is_storable_choice
from trimtab.policy.image_names import fixes_registry
from trimtab.policy.podpolicy import Spec
from trimtab.policy.required_action_rules import required_actions

Path = tuple[str | int, ...]


def image_conditions(spec: Spec) -> tuple[Path, ...]:
    """Returns the fields under `match` by which a pod's author can avoid a required action with an image."""
    containers = spec.match.containers
    if containers is None or not required_actions(spec.actions):
        return ()
    path: Path = ("spec", "match", "containers")
    images = ((*path, "images"),) if containers.images else ()
    open_patterns = (i for i, pattern in enumerate(containers.not_images) if not fixes_registry(pattern))
    return (*images, *((*path, "notImages", index) for index in open_patterns))


def exclude_conditions(spec: Spec) -> tuple[Path, ...]:
    """Returns the fields under `match.exclude` by which a pod's author can exempt the pod from a required action."""
    if not required_actions(spec.actions):
        return ()
    return tuple(
        ("spec", "match", "exclude", index, to_camel(field))
        for index, excluded in enumerate(spec.match.exclude)
        for field in Conditions.__dataclass_fields__
        if getattr(excluded, field) and is_storable_choice(field)
    )


def authoring_mistakes(document: Document, spec: Spec) -> Iterator[ConfigError]:
    """Yields the mistakes for which the policy must not be created, and must not be changed to."""
    for path in image_conditions(spec):
        if path[-1] == "images":
            yield document.error_at(
                path,
                "no images here, because an action is `required` and the pod's author chooses the image",
                "images",
                "select the images that need no action with `notImages` under `match.containers`, match by namespace, "
                "or remove `required`",
            )
        else:
            pattern = spec.match.containers.not_images[int(path[-1])] if spec.match.containers is not None else ""
            yield document.error_at(
                path,
                "a pattern that fixes a registry, such as `*.example.com/*` or `ghcr.io/team/*`, because an action is "
                "`required` and the pod's author can choose another registry",
                repr(pattern),
                "write the registry with at least the last two parts of its domain, or remove `required`",
            )
    for path in exclude_conditions(spec):
        field = str(path[-1])
        advice = (
            "select the images that need no action with `notImages` under `match.containers`, "
            if field == "containers"
            else ""
        )
        yield document.error_at(
            path,
            f"no {field} here, because an action is `required` and the pod's author chooses {field}",
            field,
            f"{advice}exclude by namespace, or remove `required`",
        )
