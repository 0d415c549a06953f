"""The report of `trimtab recommend`."""

from trimtab.command.output import API_VERSION
from trimtab.command.why import Part, Why


class DayReport(Part, frozen=True, kw_only=True):
    """One day of use, in cores or bytes (memory: peaks of six hours)."""

    day: str
    p5: float
    p50: float
    p95: float
    max: float


class MissingReport(Part, frozen=True, kw_only=True):
    """What would have to be known."""

    reason: Why
    have: str
    need: str


class ResourceReport(Part, frozen=True, kw_only=True):
    now: str | None
    """The request as it stands; null where there is none, or it is not known."""
    limit: str | None
    proposed: str | None
    """Null where it should stay as it is, or too little is known."""
    proposed_limit: str | None
    """Only where it changes with the request."""
    p5: str | None
    p50: str | None
    p95: str | None
    p99: str | None
    max: str | None
    days: float | None
    samples: int
    """Of memory: peaks."""
    confidence: float | None
    """0 to 1; null where too little is known."""
    reasons: list[Why]
    """Where the number comes from and what changed it; or why it stays."""
    missing: MissingReport | None
    curve: list[DayReport]


class ContainerReport(Part, frozen=True, kw_only=True):
    namespace: str
    kind: str
    workload: str
    container: str
    role: str | None
    """main, init or sidecar; null where no snapshot tells."""
    replicas: int | None
    """Null where no snapshot tells."""
    cpu: ResourceReport
    memory: ResourceReport
    monthly_now: float | None
    """Dollars for all replicas; null where the requests are not known."""
    monthly_proposed: float
    monthly_saved: float | None
    """Negative where it costs more."""


class RecommendReport(Part, frozen=True, kw_only=True):
    """Published as deploy/schemas/recommend-report.schema.json."""

    api_version: str = API_VERSION
    kind: str = "RecommendReport"
    rule: str
    containers: list[ContainerReport]
    """What changes most money first."""
    saved: float
    """Dollars a month, of all that is proposed."""
    changes: int
    """Containers of which a request changes."""
    unknown: int
    """Containers of which neither resource is known well enough."""
    notes: list[str]
