"""Rules for policies that are written now. A stored policy that breaks one stays in force, because the pods that it
holds must not lose it with an upgrade; `lint` has a finding for it, and the webhook counts it.

An image says nothing about who wrote the pod: its author can spell it in other ways that pull the same content, by a
mirror or a digest, or add a container whose image is trusted. So a required action cannot depend on one.
"""

from collections.abc import Iterator

from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.yaml_documents import Document
from trimtab.policy.podpolicy import Spec
from trimtab.policy.required_action_rules import required_actions

Path = tuple[str | int, ...]


def image_conditions(spec: Spec) -> tuple[Path, ...]:
    """Returns the fields by which a pod's author can escape a required action with an image or a container."""
    if not required_actions(spec.actions):
        return ()
    fields: list[Path] = []
    if spec.match.containers is not None and spec.match.containers.images:
        fields.append(("spec", "match", "containers", "images"))
    for index, excluded in enumerate(spec.match.exclude):
        if excluded.containers is not None:
            fields.append(("spec", "match", "exclude", index, "containers"))
    return tuple(fields)


def authoring_mistakes(document: Document, spec: Spec) -> Iterator[ConfigError]:
    """Yields the mistakes for which the policy must not be created, and must not be changed to."""
    for path in image_conditions(spec):
        yield document.error_at(
            path, f"no {path[-1]} here, because an action is `required` and the pod's author chooses the image",
            str(path[-1]),
            "select the images that need no action with `notImages` under `match.containers`, match by namespace, or "
            "remove `required`",
        )  # fmt: skip
