"""Kubelet summaries for tests."""

import json
from typing import Any

TIME = "2026-01-05T{0:02}:{1:02}:{2:02}Z"


def stats(name: str, at: int, millicores: float | None, mib: float | None, seconds: float | None = None) -> Any:
    time = TIME.format(at // 3600, at // 60 % 60, at % 60)
    cpu: dict[str, Any] = {"time": time}
    if millicores is not None:
        cpu["usageNanoCores"] = int(millicores * 1e6)
    if seconds is not None:
        cpu["usageCoreNanoSeconds"] = int(seconds * 1e9)
    memory = {"time": time} if mib is None else {"time": time, "workingSetBytes": int(mib * (1 << 20))}
    return {**({"name": name} if name else {}), "cpu": cpu, "memory": memory}


def node_summary(
    node: str,
    pods: int = 30,
    *,
    at: int = 0,
    kubelet: float | None = 20,
    runtime: float | None = 30,
    seconds: tuple[float, float] | None = None,
    total: tuple[float, float] | None = (2000, 8000),
    of_pods: tuple[float, float] | None = (1800, 7000),
) -> Any:
    """`kubelet`, `runtime`: millicores, and ten times as many MiB; None: the kubelet does not list it. `total` and
    `of_pods`: (millicores, MiB) of the node and of its pods."""
    parts = [
        stats(name, at, use, use * 10, None if seconds is None else seconds[index])
        for index, (name, use) in enumerate((("kubelet", kubelet), ("runtime", runtime)))
        if use is not None
    ]
    if of_pods is not None:
        parts.append(stats("pods", at, *of_pods))
    whole = stats("", at, *(total or (None, None)))
    refs = [{"podRef": {"name": f"p{number}", "namespace": "shop"}} for number in range(pods)]
    return {"node": {"nodeName": node, **whole, "systemContainers": parts}, "pods": refs}


def body(summary: Any) -> bytes:
    return json.dumps(summary).encode()
