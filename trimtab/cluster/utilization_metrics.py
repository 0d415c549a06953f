"""The metrics of an HPA that are relative to requests, and tests for HPAs without such metrics."""

from collections.abc import Iterator
from dataclasses import dataclass

from trimtab.cluster.api.autoscaling import HorizontalPodAutoscaler
from trimtab.cluster.yaml_parser import Path

RESOURCE_METRICS = ("Resource", "ContainerResource")
DEFAULT_TARGET_PERCENT = 80
"""The target of an HPA without metrics, in percent (SetDefaults_HorizontalPodAutoscaler, autoscaling/v2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilizationMetric:
    """A metric that compares usage with a share of the request."""

    resource: str
    percent: int
    container: str = ""
    """The container that is measured; empty for the pod as a whole."""
    path: Path
    """The path of the metric's target in the manifest."""
    is_old: bool = False
    """Whether the metric is written as in autoscaling/v1 or v2beta1, which have no target of the type average value."""


def utilization_metrics(hpa: HorizontalPodAutoscaler) -> Iterator[UtilizationMetric]:
    """Yields the metrics whose target is a utilization. For an HPA without metrics, that is 80 % of cpu, the API
    server's default."""
    percent = hpa.spec.target_cpu_utilization_percentage
    if percent is not None:
        path: Path = ("spec", "targetCPUUtilizationPercentage")
        yield UtilizationMetric(resource="cpu", percent=percent, path=path, is_old=True)
    elif not hpa.spec.metrics:
        yield UtilizationMetric(resource="cpu", percent=DEFAULT_TARGET_PERCENT, path=("spec", "metrics"), is_old=True)
    for index, metric in enumerate(hpa.spec.metrics):
        if metric.type not in RESOURCE_METRICS:
            continue
        name = "resource" if metric.type == "Resource" else "containerResource"
        source = metric.resource if metric.type == "Resource" else metric.container_resource
        if source.target_average_utilization is not None:
            yield UtilizationMetric(
                resource=source.name,
                percent=source.target_average_utilization,
                container=source.container,
                path=("spec", "metrics", index, name, "targetAverageUtilization"),
                is_old=True,
            )
        elif source.target.average_utilization is not None:
            yield UtilizationMetric(
                resource=source.name,
                percent=source.target.average_utilization,
                container=source.container,
                path=("spec", "metrics", index, name, "target"),
            )


def follows_pods_only(hpa: HorizontalPodAutoscaler) -> bool:
    """Returns whether all metrics of the HPA come from the pods themselves, so that none has a value while there are no
    pods: it has no Object or External metric."""
    return all(metric.type not in ("Object", "External") for metric in hpa.spec.metrics)


def follows_no_resource(hpa: HorizontalPodAutoscaler) -> bool:
    """Returns whether none of the metrics is cpu or memory of the pods."""
    return (
        bool(hpa.spec.metrics)
        and hpa.spec.target_cpu_utilization_percentage is None
        and all(metric.type not in RESOURCE_METRICS for metric in hpa.spec.metrics)
    )
