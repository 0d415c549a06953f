"""One measurement in a process of its own: CPU of this process, and memory over what it began with.

    python -m tests.bench.measured ours|streamed|typed|planned KUBECONFIG
    python -m tests.bench.measured event|typed-event URL COUNT
    python -m tests.bench.measured outage URL

Prints one line of JSON.
"""

from __future__ import annotations

import gc
import json
import resource
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from kubernetes.client import ApiClient, Configuration

from trimtab.kube.client import Client, connect_to_cluster
from trimtab.kube.informers import ClusterInformers
from trimtab.kube.reflector import Reflector
from trimtab.kube.resources import LIST_SOURCES
from trimtab.kube.transform import FieldPruner, PlannerPodTransform
from trimtab.kube.watch_state import WatchSettings

PAGE = 500


def main() -> None:
    what, where, *more = sys.argv[1:]
    if what in ("ours", "streamed", "planned"):
        events = _listed(lambda: _ours(where, streaming=what == "streamed", planned=what == "planned"))
    elif what == "typed":
        events = _listed(lambda: _typed(where))
    elif what == "event":
        events = _events(where, int(more[0]))
    elif what == "typed-event":
        events = _typed_events(where, int(more[0]))
    else:
        events = _outage(where)
    print(json.dumps(events))


def _listed(read: Callable[[], tuple[int, Any]]) -> dict[str, float]:
    gc.collect()
    before, cpu, wall = _rss(), time.process_time(), time.monotonic()
    pods, holding = read()
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    gc.collect()
    grown, peak = _rss() - before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
    assert holding is not None
    return {"pods": pods, "cpu_s": cpu, "wall_s": wall, "held_mib": grown, "peak_mib": peak}


def _rss() -> float:
    """MiB now."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize() / (1 << 20)


def _ours(kubeconfig: str, *, streaming: bool, planned: bool) -> tuple[int, Any]:
    """What `ClusterInformers` does for pods; `planned`: holding the records that plans are made of."""
    hold: Any = PlannerPodTransform() if planned else FieldPruner()
    settings = WatchSettings(stream_initial_list=streaming)
    it: Reflector[Any] = Reflector(connect_to_cluster(kubeconfig), LIST_SOURCES["Pod"], hold, settings=settings)
    threading.Thread(target=it.run, daemon=True).start()
    while not it.health.synced:
        assert not it.health.error, it.health
        time.sleep(0.05)
    it.stop()
    return len(it.store.versions_by_key()), it


def _typed(kubeconfig: str) -> tuple[int, Any]:
    """The official client's own list, page by page."""
    from kubernetes import client, config

    config.load_kube_config(config_file=kubeconfig)
    api, holdings, token = client.CoreV1Api(), [], None
    while True:
        page = api.list_pod_for_all_namespaces(limit=PAGE, _continue=token)
        holdings += page.items
        token = page.metadata._continue if hasattr(page.metadata, "_continue") else page.metadata.continue_
        if not token:
            return len(holdings), holdings


def _plain(url: str) -> Client:
    return Client(ApiClient(Configuration(host=url, retries=False)))  # type: ignore[arg-type]


def _events(url: str, count: int) -> dict[str, float]:
    it: Reflector[Any] = Reflector(_plain(url), LIST_SOURCES["Pod"], PlannerPodTransform())
    threading.Thread(target=it.run, daemon=True).start()
    while it.health.events < count // 10:  # warm
        time.sleep(0.001)
    begun, cpu, wall = it.health.events, time.process_time(), time.monotonic()
    while it.health.events < count:
        time.sleep(0.01)
    events = it.health.events - begun
    return {"events": events, "cpu_us": (time.process_time() - cpu) / events * 1e6, "wall_s": time.monotonic() - wall}


def _typed_events(url: str, count: int) -> dict[str, float]:
    """The official client's watch, which makes a model of each pod; the last one of a name is held."""
    from kubernetes import client, watch

    api = client.CoreV1Api(ApiClient(Configuration(host=url, retries=False)))  # type: ignore[arg-type]
    holdings: dict[str, Any] = {}
    begun, cpu, wall = 0, time.process_time(), time.monotonic()
    it = watch.Watch()
    for observation, event in enumerate(it.stream(api.list_pod_for_all_namespaces, resource_version="1"), 1):
        holdings[event["object"].metadata.name] = event["object"]
        if observation == count // 10:  # warm
            begun, cpu, wall = observation, time.process_time(), time.monotonic()
        if observation >= count:
            it.stop()
            break
    observation -= begun
    return {
        "events": observation,
        "cpu_us": (time.process_time() - cpu) / observation * 1e6,
        "wall_s": time.monotonic() - wall,
    }


def _outage(url: str) -> dict[str, float]:
    """Ten seconds of a server that is gone, for every list that a Watch has."""
    watch = ClusterInformers(_plain(url))
    for it in watch.reflectors:
        it._version = "1"
    watch.start()
    while len(watch.errors_by_list()) < len(watch.reflectors):
        time.sleep(0.01)
    cpu = time.process_time()
    time.sleep(10)
    assert len(watch.errors_by_list()) == len(watch.reflectors)
    return {"cpu_s": time.process_time() - cpu, "lists": len(watch.reflectors)}


if __name__ == "__main__":
    main()
