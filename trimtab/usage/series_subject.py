"""Says which container a series describes, from all labels that may name it.

The labels `namespace`, `pod` and `container` name the program that reports a series, instead of the container that it
measured, if Prometheus discovers that program as a pod and `honor_labels` is off. Prometheus then renames the series'
own labels to `exported_namespace` and so on (https://prometheus.io/docs/prometheus/latest/configuration/configuration,
honor_labels). A cAdvisor that runs as a pod has them as `container_label_io_kubernetes_…`
(https://github.com/google/cadvisor/blob/master/docs/storage/prometheus.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

NAMES = ("namespace", "pod", "container")
EXPORTED_LABELS = ("exported_namespace", "exported_pod", "exported_container")
CADVISOR_LABELS = (
    "container_label_io_kubernetes_pod_namespace",
    "container_label_io_kubernetes_pod_name",
    "container_label_io_kubernetes_container_name",
)
OTHER_NAMES = (("k8s_namespace_name",), ("pod_name", "k8s_pod_name"), ("container_name", "k8s_container_name"))
"""For namespace, pod and container: the labels that name them in their place. Kubelets before Kubernetes 1.16 wrote
`pod_name` and `container_name`, and OpenTelemetry writes the others."""
SUBJECT_LABELS = (*EXPORTED_LABELS, *CADVISOR_LABELS, *(label for labels in OTHER_NAMES for label in labels))
"""All labels, beside namespace, pod and container, that name what a series describes."""
IDENTITY_LABELS = ("id", "name", "image")
"""Labels of cAdvisor that differ between containers, the most precise one first: the path of the cgroup, the name that
the container runtime uses, and the image."""

ReadLabel = Callable[[str], str]
"""A function that returns the value of a label; empty if the series does not have it."""
Identity = tuple[tuple[str, str], ...]
"""The identity labels of a series, with their values."""


class Subject(NamedTuple):
    """What a series describes."""

    namespace: str
    pod: str
    container: str
    """The name of the container; empty for a whole pod."""
    conflict: str = ""
    """A part of a sentence that says why the labels do not name one container; empty if they do."""


def subject_of(read: ReadLabel) -> Subject:
    """Returns which container the labels of a series name."""
    plain, measured, exported = (Subject(*map(read, names)) for names in (NAMES, CADVISOR_LABELS, EXPORTED_LABELS))
    if measured.pod and measured.namespace:
        return measured
    if measured.pod not in ("", plain.pod):
        return measured._replace(conflict=f"with the label {CADVISOR_LABELS[1]} but without {CADVISOR_LABELS[0]}")
    if all(exported[:3]):
        return exported
    hidden = [
        label for label, value, own in zip(EXPORTED_LABELS, exported, plain, strict=False) if value not in ("", own)
    ]
    if hidden and hidden != [EXPORTED_LABELS[0]]:
        # The series' own label may be missing, and then the label without the prefix is that of the reporting program.
        absent = EXPORTED_LABELS[exported.index("")]
        return exported._replace(conflict=f"with the label {hidden[-1]} but without {absent}")
    values, conflict = list[str](), ""
    for label, others in zip(NAMES, OTHER_NAMES, strict=True):
        by_label = {name: value for name in (label, *others) if (value := read(name))}
        if len(set(by_label.values())) > 1:
            conflict = conflict or f"whose labels {' and '.join(by_label)} differ"
        values.append(next(iter(by_label.values()), ""))
    # The program that reports the series is no pod if it hides the namespace alone: a kubelet.
    return Subject(exported.namespace or values[0], values[1], values[2], conflict)


def identity_of(read: ReadLabel) -> Identity:
    """Returns the labels of a series that differ between containers."""
    # A path begins with a slash; a column `id` of a table may be the number of the row.
    return tuple(
        (label, value) for label in IDENTITY_LABELS if (value := read(label)) and (label != "id" or value[0] == "/")
    )


def differing_label(a: Identity, b: Identity) -> str:
    """Returns the label by which two series describe different containers; empty if no label says so. Of the labels
    that both of them have, the most precise one decides."""
    first, second = dict(a), dict(b)
    common = next((label for label in IDENTITY_LABELS if label in first and label in second), "")
    return common if first.get(common) != second.get(common) else ""
