"""Finds the places of the source where several users may wait for, or fill, the same thing: a queue, a pool of threads,
a list of the first few, or a collection with a limit."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from tests.architecture.source_words import source_files

CONSTRUCTORS = {
    "Queue",
    "SimpleQueue",
    "LifoQueue",
    "PriorityQueue",
    "JoinableQueue",
    "deque",
    "OrderedDict",
    "LRUCache",
    "TTLCache",
    "Semaphore",
    "BoundedSemaphore",
    "ThreadPoolExecutor",
    "ProcessPoolExecutor",
    "ThreadPool",
    "heappush",
    "WSGIMiddleware",
    "lru_cache",
    "cache",
    "cache_short_strings",
    "FairQueue",
    "FairSlots",
    "FairCache",
    "ChangeQueue",
    "ScrapeQueue",
    "WriteBudget",
    "BodyBudget",
}
BOUND_WORDS = ("max", "most", "limit", "room")
SIZES = {"workers", "max_workers", "maxsize", "maxlen", "max_entries"}
"""The arguments that limit what a call creates, whatever its name is."""
COUNT_ARGUMENT = {"islice": 1, "nsmallest": 0, "nlargest": 0, "most_common": 0}
"""A function that returns the first few → the position of the argument that says how many."""


def places_of(text: str) -> set[str]:
    """Returns the signs in a source text: the constructors that it calls, passes or uses as decorators, also those with
    an argument for a size; `[:BOUND]`, `[-BOUND:]`, `del [BOUND:]` and `islice(BOUND)` for a list of the first or last
    few; and `NAME >= BOUND` for a collection or a count with a limit that an object holds. Other names that the text
    gives to a constructor or a bound count as the first."""
    return _places_of([*ast.walk(ast.parse(text))])


@cache
def places_in_source() -> dict[str, set[str]]:
    """Returns file → its signs, for every file that has one."""
    return {file.name: signs for file in source_files() if (signs := _places_of([*file.nodes]))}


def _places_of(nodes: Sequence[ast.AST]) -> set[str]:
    names = _Names(dict(pair for node in nodes for pair in _aliases(node)))
    return {sign for node in nodes for sign in names.signs(node)}


def _aliases(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yields the other names that a node gives to constructors and bounds."""
    if isinstance(node, ast.ImportFrom):
        yield from ((one.asname, one.name) for one in node.names if one.asname and one.name != one.asname)
    elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        first = _last_name(node.value)
        if first in CONSTRUCTORS or _is_bound(first):
            yield from ((one.id, first) for one in targets if isinstance(one, ast.Name) and one.id != first)


@dataclass(frozen=True)
class _Names:
    """The names of one text, and what the aliases among them mean."""

    aliases: Mapping[str, str]

    def signs(self, node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Call):
            yield from self._signs_of_call(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (name for one in node.decorator_list if (name := self.name(one)) in CONSTRUCTORS)
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            lower, upper, is_deleted = node.slice.lower, node.slice.upper, isinstance(node.ctx, ast.Del)
            if upper is not None and self.is_bound(upper):
                yield f"[:{self.name(upper)}]"
            if is_deleted and lower is not None and self.is_bound(lower):
                yield f"del [{self.name(lower)}:]"
            if isinstance(lower, ast.UnaryOp) and self.is_bound(lower.operand):
                yield f"[-{self.name(lower.operand)}:]"
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for one, other in [*pairwise(sides), *pairwise(sides[::-1])]:
                if (attribute := _own_attribute(one)) and self.is_bound(other) and not _is_bound(attribute):
                    yield f"{attribute} >= {self.name(other)}"

    def _signs_of_call(self, node: ast.Call) -> Iterator[str]:
        name = self.name(node.func)
        sizes = {keyword.arg for keyword in node.keywords} & SIZES
        if name in CONSTRUCTORS or (sizes and name not in {"", "partial"}):
            yield name
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        yield from (passed for one in arguments if (passed := self.name(one)) in CONSTRUCTORS - {"cache"})
        if name in COUNT_ARGUMENT and len(node.args) > COUNT_ARGUMENT[name]:
            count = node.args[COUNT_ARGUMENT[name]]
            count = count.left if isinstance(count, ast.BinOp) else count
            yield f"{name}({count.value if isinstance(count, ast.Constant) else self.name(count)})"

    def name(self, node: ast.AST) -> str:
        """Returns the last part of a name, or what it is another name of."""
        last = _last_name(node)
        return self.aliases.get(last, last) if isinstance(node, ast.Name) else last

    def is_bound(self, node: ast.AST) -> bool:
        return _is_bound(self.name(node))


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Subscript):
        return _last_name(node.value)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_bound(name: str) -> bool:
    return any(word in name.lower().split("_") for word in BOUND_WORDS)


def _own_attribute(node: ast.AST) -> str:
    """Returns the name of an attribute of `self`, also of its length; "" for anything else."""
    if isinstance(node, ast.Call) and _last_name(node.func) == "len" and node.args:
        node = node.args[0]
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return _last_name(node) if is_own else ""
