"""How little could a workload cost on these machine types? Two linear programs, solved by HiGHS (scipy).

They share no code with the ranking: types and prices are read from the lines of its tables, pods from the JSON of the
snapshot, reservations come from the formulas. `sums`: nodes in fractions that cover the sums of cores, GiB and pods.
`shapes`: besides, each shape of pods is shared out between the types, so that cores on a node without memory hold
nothing. No real pods cost less than `shapes` on any set of types, and no model less than `sums`.
"""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy
from scipy.optimize import linprog
from scipy.sparse import lil_matrix

from trimtab.reservations.formula import NodeSize, calculate_reservations
from trimtab.reservations.kernel import gce_kernel_bytes, typical_kernel_bytes
from trimtab.reservations.read_profile import shipped_profiles

GIB, MIB = 1 << 30, 1 << 20
TABLES = Path(__file__).parents[2] / "trimtab" / "machines"
SPECIAL = {
    "aws": re.compile(r"(t\d|hpc|p\d|g\d|gr\d|inf|trn|dl\d|f\d|vt\d)"),
    "azure": re.compile(r"Standard_(B\d|N|H)"),
    "gcp": re.compile(r"(a\d|g\d|h\d|e2-(micro|small|medium)|f1|g1)"),
}
"""Names of types with accelerators, for HPC, and of those that share their cores."""
PROFILE = {"aws": "eks", "azure": "aks-1.29", "gcp": "gke"}
MAX_PODS = 110


@dataclass(frozen=True)
class Priced:
    name: str
    price: float
    """Dollars an hour."""
    left: tuple[float, float, float]
    """Cores, GiB and pods that are left after reservations and daemons."""


def demand_of(items):
    """(cores, GiB, pods) of the workload, of each node's daemons, and shape → pods."""
    shapes, daemons, nodes = Counter(), [0.0, 0.0, 0], 0
    for item in items:
        nodes += item["kind"] == "Node"
        if item["kind"] != "Pod" or item["status"].get("phase") in ("Succeeded", "Failed"):
            continue
        cores = gib = 0.0
        for container in item["spec"]["containers"]:
            expected_requests = container["resources"]["requests"]
            cores += _cores(expected_requests["cpu"])
            gib += _gib(expected_requests["memory"])
        if any(owner["kind"] == "DaemonSet" for owner in item["metadata"].get("ownerReferences", ())):
            daemons = [daemons[0] + cores, daemons[1] + gib, daemons[2] + 1]
        else:
            shapes[cores, gib] += 1
    return shapes, tuple(amount / nodes for amount in daemons)


def _cores(text):
    return int(text[:-1]) / 1000 if text.endswith("m") else float(text)


def _gib(text):
    scale = {"Ki": 1 << 10, "Mi": MIB, "Gi": GIB}
    return int(text[:-2]) * scale[text[-2:]] / GIB if text[-2:] in scale else int(text) / GIB


def eligible_types(cloud, region, daemons):
    """Types of the region for amd64 pods, with what is left for them."""
    profile, prices = shipped_profiles()[PROFILE[cloud]], dict(_rows("prices.txt", f"{cloud} {region}"))
    for name, architecture, cores, memory_mib, kernel_mib, *_, use in _rows("types.txt", cloud):
        if name not in prices or architecture != "amd64" or use != "." or SPECIAL[cloud].match(name):
            continue
        memory = int(memory_mib) * MIB
        lost = memory - int(kernel_mib) * MIB if kernel_mib != "." else _kernel_loss(cloud, memory)
        size = NodeSize(
            millicores=round(float(cores) * 1000), memory_bytes=memory, max_pods=MAX_PODS, lost_bytes=max(0, int(lost))
        )
        rest = calculate_reservations(profile, size)
        left = (
            rest.allocatable_millicores / 1000 - daemons[0],
            rest.allocatable_memory_bytes / GIB - daemons[1],
            MAX_PODS - daemons[2],
        )
        if min(left) > 0:
            yield Priced(name, int(prices[name]) / 1e6, left)


def _rows(file, section):
    """The fields of each line in one section of a table of `trimtab/machines`."""
    now = ""
    for line in (TABLES / file).read_text().splitlines():
        if line.startswith("["):
            now = line.strip("[]")
        elif now == section and line and not line.startswith("#"):
            yield line.split()


def _kernel_loss(cloud, memory):
    return gce_kernel_bytes(memory) if cloud == "gcp" else typical_kernel_bytes(memory)


def least_by_sums(types, shapes):
    """Dollars an hour below which no fractions of nodes cover the sums."""
    needs = [
        sum(cores * n for (cores, _), n in shapes.items()),
        sum(gib * n for (_, gib), n in shapes.items()),
        sum(shapes.values()),
    ]
    rows = -numpy.array([one.left for one in types]).T
    solved = linprog([one.price for one in types], A_ub=rows, b_ub=[-need for need in needs], method="highs")
    assert solved.status == 0, solved.message
    return solved.fun


def least_by_shapes(types, shapes):
    """The same where pods of each shape are shared out between the types, in fractions."""
    kinds = list(shapes.items())
    width = len(types) * (1 + len(kinds))
    upper, equal = lil_matrix((3 * len(types), width)), lil_matrix((len(kinds), width))
    for number, one in enumerate(types):
        for row, free in enumerate(one.left):
            upper[3 * number + row, number] = -free
        for k, ((cores, gib), _) in enumerate(kinds):
            column = len(types) + number * len(kinds) + k
            if cores <= one.left[0] and gib <= one.left[1]:
                for row, request in enumerate((cores, gib, 1)):
                    upper[3 * number + row, column] = request
                equal[k, column] = 1
            else:
                # A pod that is larger than the node goes elsewhere: it would need more than there is.
                upper[3 * number, column] = 1e6
    cost = [one.price for one in types] + [0.0] * (width - len(types))
    solved = linprog(
        cost,
        A_ub=upper.tocsr(),
        b_ub=numpy.zeros(3 * len(types)),
        A_eq=equal.tocsr(),
        b_eq=[count for _, count in kinds],
        method="highs",
    )
    assert solved.status == 0, solved.message
    return solved.fun
