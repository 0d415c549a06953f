"""Where does a review's CPU go? Step by step, in one process, without a server.

    python -m tests.bench.steps [FOLDER]        FOLDER holds small.json, typical.json, big.json (`payloads.py`)

The best of many runs of each step, in microseconds: a machine that others use can only make them longer.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from prometheus_client import CollectorRegistry

from tests.bench import crowd, servers
from tests.bench.results import choose_size, note_change, report_result
from tests.build import admission_context
from trimtab.admission import admission_review as wire
from trimtab.admission import handler as answers
from trimtab.admission.json_patch import check_patch, diff_pods
from trimtab.admission.pod_decision import decide_pod
from trimtab.admission.response_cache import ResponseCache, normalize_pod_bytes
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.snapshot import load_snapshot
from trimtab.policy.applicable_policies import find_applicable_policies
from trimtab.policy.cluster_facts import ClusterFacts, from_snapshot
from trimtab.policy.decide import decide_with_policies
from trimtab.policy.load import load_policies
from trimtab.policy.pod_context import DEFAULT_SETTINGS, PodBeforeAndAfter, PodContext
from trimtab.runtime import files, log
from webhook.metrics import DecisionLogger, WebhookMetrics

NAMESPACE = "payments"
RUNS, TIMES = choose_size(300, 30), 1


def main() -> None:
    if len(sys.argv) > 1:
        note_change("bodies")
    facts = from_snapshot(load_snapshot([("snapshot.json", json.dumps(crowd.snapshot()).encode())]).snapshot)
    with tempfile.TemporaryDirectory() as folder:
        bodies = servers.bodies(Path(folder)) if len(sys.argv) < 2 else _in(Path(sys.argv[1]))
        figures = {name: _show(name, _steps(body.read_bytes(), facts)) for name, body in bodies.items()}
    line = " ".join(f"{name}_{kind}_us={cost:.0f}" for name, each in figures.items() for kind, cost in each.items())
    report_result("steps", line, broken={})


def _in(folder: Path) -> dict[str, Path]:
    return {name: folder / f"{name}.json" for name in ("small", "typical", "big")}


def _steps(body: bytes, facts: ClusterFacts) -> dict[str, float]:
    policies = load_policies(files.read_files([Path(path) for path in crowd.POLICIES.split(":")])).policies
    review, memory = wire.decode(body), ResponseCache()
    raw = bytes(review.request.object)
    pod: Pod = answers._pod_decoder.decode(raw)
    decision = decide_pod(PodContext(pod=pod, namespace=NAMESPACE, facts=facts), policies)
    first = answers.answer_review(body, admission_context(policies, facts, memory=memory))
    key = (NAMESPACE, (normalize_pod_bytes(raw) or (raw, b""))[0])
    teller = DecisionLogger(WebhookMetrics(CollectorRegistry()), log.build_logger("info", "json", io.StringIO()))

    def subject(it: Pod) -> PodContext:
        return PodContext(pod=it, namespace=NAMESPACE, facts=facts)

    request = decide_with_policies(subject(pod), policies)[1]

    def match() -> None:
        find_applicable_policies(policies, subject(pod))

    def check() -> None:
        def again(it: Pod) -> Pod:
            return decide_with_policies(subject(it), policies, watching=False, like=request)[0].pod

        pods = PodBeforeAndAfter(before=subject(pod), after=subject(decision.decision.pod))
        check_patch(pods, decision.operations, again)

    timed: dict[str, Callable[[], object]] = {
        "decode the review": lambda: bytes(wire.decode(body).request.object),
        "decode the pod": lambda: answers._pod_decoder.decode(raw),
        "match": match,
        "decide": lambda: decide_with_policies(subject(pod), policies),
        "patch": lambda: diff_pods(pod, decision.decision.pod),
        "check": check,
        "encode": lambda: wire.encode(review, answers._build_record(decision).response),
        "recall": lambda: (normalize_pod_bytes(raw), memory.find_record(key, policies, facts, DEFAULT_SETTINGS)),
        "encode again": lambda: wire.encode(review, first.record.response),
        "tell": lambda: teller.log_review(first),
    }
    costs = {name: _best(step) for name, step in timed.items()}
    costs["decide"] -= costs["match"]
    return costs


def _best(step: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(RUNS):
        begun = time.process_time_ns()
        for _ in range(TIMES):
            step()
        best = min(best, (time.process_time_ns() - begun) / TIMES / 1000)
    return best


def _show(name: str, costs: dict[str, float]) -> dict[str, float]:
    """Prints the steps, and returns what each kind of review costs in total."""
    new = ("decode the review", "decode the pod", "match", "decide", "patch", "check", "encode", "tell")
    totals = {}
    for title, steps in (("decided", new), ("cached", ("decode the review", "recall", "encode again", "tell"))):
        totals[title] = whole = sum(costs[step] for step in steps)
        shares = ", ".join(f"{step} {costs[step]:.1f} ({costs[step] / whole:.0%})" for step in steps)
        print(f"{name:8} {title:10} {whole:7.1f} µs: {shares}")
    return totals


if __name__ == "__main__":
    main()
