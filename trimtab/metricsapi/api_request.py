"""Reads from a path and a query what a client of `custom.metrics.k8s.io` requests.

The paths are those of an aggregated API. Every other path is answered with 404: newer API servers first request `/apis`
and `/discovery/v2`, and use the two documents of this group if both are missing.
"""

from dataclasses import dataclass
from urllib.parse import parse_qs, unquote

from trimtab.cluster.api.meta import SelectorRequirement
from trimtab.cluster.selectors import EXPECTED_SELECTOR, parse

GROUP, VERSION = "custom.metrics.k8s.io", "v1beta2"
GROUP_VERSION = f"{GROUP}/{VERSION}"
API_SERVICE_NAME = f"{VERSION}.{GROUP}"
ALL_NAMES = "*"
MAX_PATH_BYTES = 4096


@dataclass(frozen=True, slots=True)
class DiscoveryRequest:
    """A request for a discovery document: that of the API group, or that of the group's only version."""

    path: str
    is_version: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRequest:
    """A request for the values of one metric of some pods."""

    namespace: str
    name: str
    """The name of one pod, or `*` for all."""
    metric: str
    requirements: tuple[SelectorRequirement, ...] = ()
    """The label selector for the pods; empty selects all."""

    @property
    def is_single(self) -> bool:
        """Whether the request names a single pod."""
        return self.name != ALL_NAMES


@dataclass(frozen=True, slots=True)
class InvalidRequest:
    """Why a request is not answered: a status code, a reason as in Kubernetes' Status, and a message."""

    status: int
    reason: str
    message: str


ApiRequest = DiscoveryRequest | MetricRequest | InvalidRequest

NOT_FOUND = InvalidRequest(404, "NotFound", "the server could not find the requested resource")


def read_request(method: str, raw_path: bytes, query: bytes) -> ApiRequest:
    """Returns the request, or why it is not valid. `raw_path` is the path as it was sent, because a name may contain an
    escaped slash or colon."""
    if len(raw_path) > MAX_PATH_BYTES or len(query) > MAX_PATH_BYTES:
        return InvalidRequest(414, "RequestURITooLong", f"the path or the query has more than {MAX_PATH_BYTES} bytes")
    try:
        segments = [unquote(part, errors="strict") for part in raw_path.decode("ascii").strip("/").split("/")]
        parameters = parse_qs(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=32)
    except (UnicodeError, ValueError):
        return InvalidRequest(400, "BadRequest", "the path or the query is not valid")
    if segments[:2] != ["apis", GROUP] or segments[2:3] not in ([], [VERSION]):
        return NOT_FOUND
    if method != "GET":
        return InvalidRequest(405, "MethodNotAllowed", f"{method} is not supported: metrics can only be read")
    if len(segments) <= 3:
        return DiscoveryRequest("/" + "/".join(segments), is_version=len(segments) == 3)
    # Only pods have metrics; nodes, namespaces and other objects have none.
    if len(segments) != 8 or segments[3] != "namespaces" or segments[5] != "pods" or not all(segments[3:]):
        return NOT_FOUND
    return _read_metric_request(segments[4], segments[6], segments[7], parameters)


def _read_metric_request(namespace: str, name: str, metric: str, parameters: dict[str, list[str]]) -> ApiRequest:
    if any(parameters.get("metricLabelSelector", ())):
        message = "metricLabelSelector is not supported, because the rule itself selects series by its `labels`"
        return InvalidRequest(400, "BadRequest", message)
    text = (parameters.get("labelSelector") or [""])[0]
    try:
        requirements = parse(text) if text.strip() else ()
    except ValueError:
        return InvalidRequest(400, "BadRequest", f"labelSelector: expected {EXPECTED_SELECTOR}")
    return MetricRequest(namespace=namespace, name=name, metric=metric, requirements=requirements)
