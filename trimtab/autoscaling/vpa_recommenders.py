"""The VPA's recommenders among the objects that are linted, and the flags of the one that a VPA chose."""

from collections.abc import Mapping
from dataclasses import dataclass

from trimtab.autoscaling.lint_snapshot import LintSnapshot
from trimtab.cluster.api.autoscaling import VerticalPodAutoscaler
from trimtab.cluster.cluster_autoscaler import parse_flags

_NAME_FLAG, _DEFAULT_RECOMMENDER = "recommender-name", "default"


@dataclass(frozen=True, slots=True)
class Recommenders:
    """The VPA's recommenders among the objects. A cluster may have several, and a VPA may choose one by its name."""

    flags_by_name: Mapping[str, Mapping[str, str]]

    def flags_of(self, vpa: VerticalPodAutoscaler) -> Mapping[str, str] | None:
        """Returns the flags of the VPA's recommender. If the default one is not among the objects, its flags count as
        not set; None for any other one that is not."""
        names = [one.name for one in vpa.spec.recommenders if one.name] or [_DEFAULT_RECOMMENDER]
        return self.flags_by_name.get(names[0], {} if names[0] == _DEFAULT_RECOMMENDER else None)


def read_recommenders(snapshot: LintSnapshot) -> Recommenders:
    """Returns the VPA's recommenders among the workloads."""
    flags_by_name: dict[str, Mapping[str, str]] = {}
    for workload in snapshot.workloads:
        for container in workload.spec.containers:
            flags = parse_flags(container.arguments)
            name = flags.get(_NAME_FLAG, _DEFAULT_RECOMMENDER)
            if (
                _NAME_FLAG in flags
                or "vpa-recommender" in container.image
                or "vpa-recommender" in workload.subject.name
            ):
                flags_by_name.setdefault(name, flags)
    return Recommenders(flags_by_name)
