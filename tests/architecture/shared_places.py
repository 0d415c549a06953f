"""Finds the places of the source where several users may wait for, or fill, the same thing: a queue, a pool of threads,
a list of the first few, or a collection with a limit."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache

from tests.architecture.source_words import source_files

CONSTRUCTORS = {
    "Queue", "SimpleQueue", "LifoQueue", "PriorityQueue", "JoinableQueue", "deque", "OrderedDict", "LRUCache",
    "TTLCache", "Semaphore", "BoundedSemaphore", "ThreadPoolExecutor", "ProcessPoolExecutor", "ThreadPool", "heappush",
    "FairQueue", "FairSlots", "FairCache", "ChangeQueue", "ScrapeQueue", "WriteBudget", "BodyBudget",
}  # fmt: skip
BOUND_WORDS = ("max", "most", "limit", "room")


def places_of(text: str) -> set[str]:
    """Returns the signs in a source text: the constructors that it calls, `[:BOUND]` for a list of the first few, and
    `NAME >= BOUND` for a collection or a count with a limit that an object holds."""
    return _places_of(ast.walk(ast.parse(text)))


@cache
def places_in_source() -> dict[str, set[str]]:
    """Returns file → its signs, for every file that has one."""
    return {file.name: signs for file in source_files() if (signs := _places_of(file.nodes))}


def _places_of(nodes: Iterable[ast.AST]) -> set[str]:
    return {sign for node in nodes for sign in _signs(node)}


def _signs(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call) and _name(node.func) in CONSTRUCTORS:
        yield _name(node.func)
    elif isinstance(node, ast.keyword) and node.arg == "default_factory" and _name(node.value) in CONSTRUCTORS:
        yield _name(node.value)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        if node.slice.upper is not None and _is_bound(_name(node.slice.upper)):
            yield f"[:{_name(node.slice.upper)}]"
    elif isinstance(node, ast.Compare) and (attribute := _own_attribute(node.left)):
        yield from (f"{attribute} >= {_name(bound)}" for bound in node.comparators if _is_bound(_name(bound)))


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Subscript):
        return _name(node.value)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_bound(name: str) -> bool:
    return any(word in name.lower().split("_") for word in BOUND_WORDS)


def _own_attribute(node: ast.AST) -> str:
    """Returns the name of an attribute of `self`, also of its length; "" for anything else."""
    if isinstance(node, ast.Call) and _name(node.func) == "len" and node.args:
        node = node.args[0]
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return _name(node) if is_own else ""
