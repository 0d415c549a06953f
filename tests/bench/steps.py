"""Where does a review's CPU go? Step by step, in one process, without a server.

    python -m tests.bench.steps [FOLDER]        FOLDER holds small.json, typical.json, big.json (`payloads.py`)

The best of many runs of each step, in microseconds: a machine that others use can only make them longer. The totals are
those of whole answers with the caches, as they are served: of a pod that is decided anew, of one that is similar to an
earlier one, and of one that is the same. What the steps do not name is `rest`: above all recording what is read, and
storing the decision.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from prometheus_client import CollectorRegistry

from tests.bench import crowd, servers
from tests.bench.arrivals import OTHER, TOKEN
from tests.bench.results import choose_size, note_change, report_result
from tests.build import SIGNING, admission_context
from trimtab.admission import admission_review as wire
from trimtab.admission import handler as answers
from trimtab.admission.json_patch import check_patch, diff_pods
from trimtab.admission.pod_bytes import mask_pod_bytes
from trimtab.admission.pod_decision import decide_pod
from trimtab.admission.response_cache import ResponseCache
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
    pod_bytes = mask_pod_bytes(raw)
    assert pod_bytes is not None
    key = (NAMESPACE, pod_bytes.masked, None)
    teller = DecisionLogger(WebhookMetrics(CollectorRegistry()), log.build_logger("info", "json", io.StringIO()))

    def subject(it: Pod) -> PodContext:
        return PodContext(pod=it, namespace=NAMESPACE, facts=facts)

    def answer(text: str) -> Callable[[], None]:
        """Answers reviews in each of which this text is another one."""
        bodies = (body.replace(text.encode(), b"%0*d" % (len(text), number)) for number in count())

        def answer_next() -> None:
            context = admission_context(policies, facts, settings=SIGNING, memory=memory)
            teller.log_review(answers.answer_review(next(bodies), context))

        return answer_next

    request = decide_with_policies(subject(pod), policies)[1]
    assert request is not None

    def check() -> None:
        # Mostly the last round of the decision was made on the changed pod: it is the second decision.
        pods = PodBeforeAndAfter(before=subject(pod), after=request.subject.with_pod(decision.decision.pod))
        check_patch(pods, decision.operations, lambda it: it)

    timed: dict[str, Callable[[], object]] = {
        "decode the review": lambda: bytes(wire.decode(body).request.object),
        "decode the pod": lambda: answers._pod_decoder.decode(raw),
        "match": lambda: find_applicable_policies(policies, subject(pod)),
        "decide": lambda: decide_with_policies(subject(pod), policies),
        "patch": lambda: diff_pods(pod, decision.decision.pod),
        "check": check,
        "encode": lambda: wire.encode(review, answers._build_record(decision).response),
        "recall": lambda: (mask_pod_bytes(raw), memory.find_record(key, policies, facts, DEFAULT_SETTINGS)),
        "encode again": lambda: wire.encode(review, first.record.response),
        "tell": lambda: teller.log_review(first),
        "cached": answer(TOKEN),
        "similar": answer(OTHER),
        "decided": answer("prometheus.io/scrape"),
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
    kinds = {
        "decided": new,
        "similar": ("decode the review", "decode the pod", "tell"),
        "cached": ("decode the review", "recall", "encode again", "tell"),
    }
    for title, steps in kinds.items():
        whole = costs[title]
        named = {step: costs[step] for step in steps}
        named["rest"] = whole - sum(named.values())
        shares = ", ".join(f"{step} {cost:.1f} ({cost / whole:.0%})" for step, cost in named.items())
        print(f"{name:8} {title:10} {whole:7.1f} µs: {shares}")
    return {title: costs[title] for title in kinds}


if __name__ == "__main__":
    main()
