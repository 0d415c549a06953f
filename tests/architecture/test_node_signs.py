"""What a node is, is known in one module: nowhere else does a literal name a sign of it."""

import ast
from collections.abc import Iterable

from tests.architecture.source_words import source_files
from trimtab.cluster.node_nature import SIGN_LABELS, SIGN_RULES

KNOWS_SIGNS = {"trimtab/cluster/node_nature.py", "trimtab/cluster/pool_labels.py"}
"""The second one has labels that name pools, some of which also show what a node is."""
SIGNS = {rule.key for rule in SIGN_RULES} | SIGN_LABELS


def signs_in(nodes: Iterable[ast.AST]) -> set[str]:
    strings = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return strings & {sign for sign in SIGNS if "/" in sign and not sign.endswith("/instance-type")}


def test_no_other_module_names_a_sign() -> None:
    others = [file for file in source_files() if file.name not in KNOWS_SIGNS]
    named = {file.name: signs for file in others if (signs := signs_in(file.nodes))}
    assert named == {}


def test_a_planted_sign_is_seen() -> None:
    planted = ast.walk(ast.parse('IS_FARGATE = "eks.amazonaws.com/compute-type" in labels'))
    assert signs_in(planted) == {"eks.amazonaws.com/compute-type"}
