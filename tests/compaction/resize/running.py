"""Running pods, nodes and records in one line each."""

from typing import Any

from trimtab.cluster.api.meta import Metadata, OwnerReference
from trimtab.cluster.api.pod import Condition, Container, ContainerStatus, Pod, PodSpec, PodStatus, Resources
from trimtab.cluster.resizable_pod import ResizablePod, ResizablePodReader
from trimtab.cluster.timestamps import format_timestamp
from trimtab.cluster.wanted_requests import WantedRequest, WantedRequests
from trimtab.compaction.resize import reasons as r
from trimtab.compaction.resize.types import ResizeChange, ResizeProposal

NOW = 1_800_000_000
OWNER = "default/Deployment/web"


def api_pod(name: str = "web-1", cpu: str = "500m", memory: str = "512Mi", **more: Any) -> Pod:
    """A running Burstable pod with one container; `has` is what its node gave it (None: an old kubelet)."""
    requests = {"cpu": cpu, "memory": memory, **more.get("requests", {})}
    requests = {name: amount for name, amount in requests.items() if amount}
    has = more.get("has", requests)
    limits = more.get("limits", {})
    container = Container(
        name="app",
        resources=Resources(requests=requests, **({"limits": limits} if limits else {})),
        resize_policy=more.get("resize_policy", ()),
    )
    state = more.get("state", {"running": {}})
    status = ContainerStatus(
        name="app",
        ready=more.get("ready", True),
        restart_count=more.get("restarts", 0),
        state=state,
        last_state=more.get("last_state", {}),
        **({} if has is None else {"resources": Resources(requests=has)}),
    )
    ready = Condition(
        type="Ready",
        status="True" if more.get("ready", True) else "False",
        last_transition_time=format_timestamp(more.get("ready_changed", NOW - 7200)),
    )
    return Pod(
        metadata=Metadata(
            name=name,
            namespace="default",
            uid=f"uid-{name}",
            resource_version=more.get("version", "1"),
            owner_references=(
                OwnerReference(kind_name="ReplicaSet", name=more.get("owner", "web-5d4"), controller=True),
            ),
            annotations=more.get("annotations", {}),
            labels=more.get("labels", {}),
            deletion_timestamp=more.get("deleted"),
        ),
        spec=PodSpec(containers=(container,), node_name=more.get("node", "a"), **more.get("spec", {})),
        status=PodStatus(
            phase=more.get("phase", "Running"),
            start_time=format_timestamp(more.get("started", NOW - 7200)),
            conditions=(ready, *more.get("conditions", ())),
            container_statuses=(status,),
        ),
    )


def running(name: str = "web-1", cpu: str = "500m", memory: str = "512Mi", **more: Any) -> ResizablePod:
    return ResizablePodReader().read_pod(api_pod(name, cpu, memory, **more))


def oom_killed(at: int) -> dict[str, Any]:
    return {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": format_timestamp(at)}}


def pending(reason: str) -> Condition:
    return Condition(type="PodResizePending", status="True", reason=reason, message=f"the node is {reason}")


def wants(cpu: int = 0, memory: int = 0, **more: Any) -> WantedRequests:
    """What a policy wants for container `app`, in millicores and MiB; `used` memory in MiB."""
    requests = {}
    if cpu:
        requests["app", "cpu"] = WantedRequest(
            amount=cpu, policy="teams", reason=r.SHRINKS("P95 of two weeks"), floor=more.get("floor", 0)
        )
    if memory:
        requests["app", "memory"] = WantedRequest(
            amount=memory << 20,
            policy="teams",
            reason=r.SHRINKS("P95 of two weeks"),
            used=more.get("used", 1) << 20,
            floor=more.get("memory_floor", 0) << 20,
        )
    return WantedRequests(requests=requests)


def shrinks(name: str, before: str = "500m", after: str = "200m", **more: Any) -> ResizeProposal:
    change = ResizeChange(container="app", resource=more.get("resource", "cpu"), before=before, after=after)
    return ResizeProposal(
        pod=f"default/{name}",
        uid=f"uid-{name}",
        node=more.get("node", "a"),
        pool="all",
        owner=more.get("owner", OWNER),
        version="1",
        changes=(change,),
        policies=("teams",),
        reason=r.SHRINKS("less"),
    )
