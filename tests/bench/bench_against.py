"""Is this commit slower than that one? Both in turn, in pairs, on the same machine.

    make bench-against COMMIT=da76598 [BENCH=webhook|plan|watch] [PAIRS=15]

The other commit is checked out into a temporary folder and runs with this environment's packages. Each run is a process
of its own, the order within a pair is drawn, and what is compared is CPU within a pair: what a machine does beside
it falls on both.

Both do the same work. `webhook` decides with the other commit's policies, recommendations and cluster: this commit
ships more policies, and one that is asked in vain costs as well; what was written then is read now, while new words are
not read there. It ends where either side finds a mistake in them, or no usage.

A run does its work five times and counts the least: one pass alone takes a third more or less from one process to the
next.

The last line is `RESULT bench=… ratio=… low=… high=… pairs=…`: this commit to that one, the median of the pairs, and
the 95 % interval of that median by bootstrap.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.stub import Stub

ROOT = Path(__file__).parents[2]
EVENTS = 6000
LEAST_PAIRS = 15
DRAWS = 4000

FIRST_OF = """
import importlib

PASSES = 5

def first_of(*places):
    '''The first of these `module:name` that this commit has; newest first.'''
    for place in places:
        module, _, name = place.partition(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"none of {', '.join(places)}")
"""
"""What a script says first that runs with another commit's code: modules and functions had other names there."""

WEBHOOK = (
    FIRST_OF
    + """
import json, sys, time
from pathlib import Path
from trimtab.policy.load import load_policies

load_snapshot = first_of("trimtab.cluster.snapshot:load_snapshot", "trimtab.cluster.snapshot:load")
read_files = first_of("trimtab.runtime.files:read_files", "trimtab.runtime.files:read")
answer_review = first_of(
    "trimtab.admission.handler:answer_review", "trimtab.admission.handler:answer", "trimtab.admission.answer:answer"
)
ResponseCache = first_of(
    "trimtab.admission.response_cache:ResponseCache", "trimtab.admission.remembered:Memory"
)
from_snapshot = first_of("trimtab.policy.cluster_facts:from_snapshot", "trimtab.policy.facts:from_snapshot")
DEFAULT_SETTINGS = first_of(
    "trimtab.policy.pod_context:DEFAULT_SETTINGS", "trimtab.policy.pod_context:DEFAULT_TERMS",
    "trimtab.policy.subject:DEFAULT_TERMS",
)

world = load_snapshot([("snapshot.json", Path(sys.argv[1], "snapshot.json").read_bytes())])
read = load_policies(read_files([Path(sys.argv[1], "policies", part) for part in ("recommended", "library")]))
assert not world.mistakes and not read.mistakes, (world.mistakes, read.mistakes)
facts, policies = from_snapshot(world.snapshot), read.policies
assert facts.recommendations.workloads, facts.problems

def body(number):
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "uid": "u", "controller": True}
    owner["name"] = f"payments-api-{number}"
    sized = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}}
    env = [{"name": f"E{at}", "value": "v" * 20} for at in range(40)]
    one = {"image": "registry.example.com/x:1", "resources": sized, "env": env}
    containers = [{"name": name, **one} for name in ("app", "app-1")]
    metadata = {"generateName": f"payments-api-{number}-", "namespace": "payments", "ownerReferences": [owner]}
    metadata["labels"] = {"app": "payments-api", "pod-template-hash": str(number)}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
           "spec": {"containers": containers, "volumes": [{"name": "tmp", "emptyDir": {}}]}}
    request = {"uid": str(number), "resource": {"group": "", "version": "v1", "resource": "pods"},
               "namespace": "payments", "operation": "CREATE",
               "userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller"}, "object": pod}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(review).encode()

try:
    from trimtab.admission.admission_context import AdmissionContext
except ImportError:
    def decide(one, memory):
        answer_review(one, policies, facts, DEFAULT_SETTINGS, memory)
else:
    def decide(one, memory):
        context = AdmissionContext(policies=policies, facts=facts, settings=DEFAULT_SETTINGS, memory=memory)
        answer_review(one, context)

bodies, spent = [body(number) for number in range(400)], []
for _ in range(PASSES):
    memory = ResponseCache()
    begun = time.process_time()
    for one in bodies:
        for _ in range(10):  # decided once, and nine siblings
            decide(one, memory)
    spent.append(time.process_time() - begun)
print(min(spent))
"""
)

CROWD = """
import json, sys
from pathlib import Path
from tests.bench import crowd

def usage(number):
    low, high = 10 + number % 40, 150 + number % 400
    cpu = crowd.Percentiles(p5=f"{low}m", p50=f"{2 * low}m", p95=f"{high}m", max=f"{3 * high}m")
    memory = crowd.Percentiles(p5=f"{2 * low}Mi", p50=f"{3 * low}Mi", p95=f"{high}Mi", max=f"{2 * high}Mi")
    return crowd.ContainerUsage(cpu=cpu, memory=memory, days=14.0, samples=20160)

crowd._usage = usage
Path(sys.argv[1], "snapshot.json").write_text(json.dumps(crowd.snapshot()))
"""
"""Writes the snapshot with the other commit's code. Its own numbers may be such that neither commit reads them: a
median above the 95th percentile is refused."""

PLAN = (
    FIRST_OF
    + """
import sys, time
sys.path.insert(0, "tests/bench")
import bench_plan

make_plan = first_of("bench_plan:make_plan", "bench_plan:plan")
build_cluster_model = first_of("bench_plan:build_cluster_model", "bench_plan:build")
inventory = bench_plan.read("synthetic", bench_plan.synthetic(1000))
spent = []
for _ in range(PASSES):
    begun = time.process_time()
    make_plan(build_cluster_model(inventory), [bench_plan.ALL])
    spent.append(time.process_time() - begun)
print(min(spent))
"""
)


def main() -> None:
    commit, bench, pairs = sys.argv[1], sys.argv[2], max(int(sys.argv[3]), LEAST_PAIRS)
    with checked_out(commit) as other:
        _said(["-c", CROWD, str(other)], other)
        ratios = []
        for number in range(pairs):
            trees = [ROOT, other]
            random.shuffle(trees)
            spent = {tree: _run(bench, tree, other) for tree in trees}
            ratios.append(spent[ROOT] / spent[other])
            print(f"pair {number + 1}: {spent[ROOT]:.4g} to {spent[other]:.4g}, {ratios[-1]:.3f}", flush=True)
    low, high = interval(ratios)
    print(
        f"RESULT bench={bench} ratio={statistics.median(ratios):.3f} low={low:.3f} high={high:.3f} pairs={len(ratios)}"
    )


def interval(ratios: list[float], draws: int = DRAWS, seed: int = 1) -> tuple[float, float]:
    """95 % of the medians of as many ratios drawn from these."""
    drawn = random.Random(seed)
    medians = sorted(statistics.median(drawn.choices(ratios, k=len(ratios))) for _ in range(draws))
    return medians[draws * 25 // 1000], medians[draws * 975 // 1000]


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """The other commit's files, for as long as they are needed."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "other"
        subprocess.run(
            ["git", "-C", str(ROOT), "worktree", "add", "--quiet", "--detach", str(tree), commit], check=True
        )
        try:
            yield tree
        finally:
            subprocess.run(["git", "-C", str(ROOT), "worktree", "remove", "--force", str(tree)], check=True)


def _run(bench: str, tree: Path, other: Path) -> float:
    """CPU that one run takes in a fresh process with this tree's code, on what the other one has."""
    if bench == "watch":
        stub = Stub(_pods(), EVENTS)
        stub.start()
        text = _said(["-m", "tests.bench.measured", "event", stub.url, str(EVENTS)], tree)
        return float(json.loads(text)["cpu_us"])
    return float(_said(["-c", {"webhook": WEBHOOK, "plan": PLAN}[bench], str(other)], tree))


def _said(arguments: list[str], tree: Path) -> str:
    shared = Path(os.environ.get("TRIMTAB_SHARED", "../shared"))
    environ = {
        **os.environ,
        "BENCH_RECORD": "0",
        "PYTHONPATH": str(tree),
        "TRIMTAB_SHARED": str((ROOT / shared).resolve()),
    }
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tree, env=environ, capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode:
        raise SystemExit(f"{tree}: {done.stderr}")
    return done.stdout.strip().rpartition("\n")[2]


def _pods() -> list[dict[str, object]]:
    container = {
        "name": "app",
        "image": "app:1",
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        "env": [{"name": f"E{at}", "value": "v" * 20} for at in range(40)],
    }
    return [
        {
            "metadata": {"name": f"p{at}", "namespace": "a", "uid": str(at)},
            "spec": {"nodeName": "n", "containers": [container]},
            "status": {"phase": "Running"},
        }
        for at in range(300)
    ]


if __name__ == "__main__":
    main()
