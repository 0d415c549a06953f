"""One module unpacks compressed data and decodes MessagePack of others, because only there the memory has a limit."""

import ast
from collections.abc import Iterable

import pytest

from tests.architecture.source_words import ROOT, SHIPPED, source_files

PLACE = "trimtab/cluster/bounded_decode.py"

ALLOWED = {"gzip": {"compress"}, "zlib": {"compress", "compressobj", "crc32", "MAX_WBITS", "DEFLATED", "Z_FILTERED"}}
"""Module → what is used of it elsewhere: packing and checksums only."""
REFUSED_MODULES = {
    "bz2",
    "lzma",
    "zipfile",
    "tarfile",
    "zipimport",
    "compression",
    "zstandard",
    "brotli",
    "lz4",
    "snappy",
    "pickle",
    "marshal",
    "shelve",
}
REFUSED_CALLS = {"unpack_archive", "decompress", "decompressobj", "GzipFile"}
MSGPACK_WITHOUT_LIMIT = {
    "trimtab/histogram/daily_rows.py": "a column of the user's own Parquet files, whose pages have the size of the row",
    "trimtab/inputs/fleet_clusters.py": "what a process of the same user has encoded a moment before",
    "trimtab/fleet/": "what a process of the same user has encoded a moment before",
}
"""File or folder → why it decodes MessagePack without a limit."""


def refusals(file: str, nodes: Iterable[ast.AST]) -> list[str]:
    """Returns what a file uses that only one module may use."""
    problems = []
    for node in nodes:
        if isinstance(node, ast.Import):
            problems += [alias.name for alias in node.names if alias.name.split(".")[0] in REFUSED_MODULES]
        elif isinstance(node, ast.ImportFrom):
            module = (node.module or "").split(".")[0]
            names = {alias.name for alias in node.names}
            if module in REFUSED_MODULES or names - ALLOWED.get(module, names):
                problems.append(f"from {node.module} import …")
        elif isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            if node.attr in REFUSED_CALLS or node.attr not in ALLOWED.get(owner, {node.attr}):
                problems.append(f"{owner}.{node.attr}")
            if node.attr == "msgpack" and owner == "msgspec" and not file.startswith(tuple(MSGPACK_WITHOUT_LIMIT)):
                problems.append("msgspec.msgpack")
    return problems


def decodes_msgpack(text: str) -> bool:
    return "msgpack.decode(" in text or "msgpack.Decoder(" in text


def test_no_other_module_unpacks_anything() -> None:
    files = {file.name: file for file in source_files(SHIPPED)}
    files.pop(PLACE)
    problems = {name: refusals(name, file.nodes) for name, file in files.items()}
    # Encoding is harmless: only a module that decodes needs a limit.
    assert {
        file: rest
        for file, names in problems.items()
        if (rest := [name for name in names if name != "msgspec.msgpack" or decodes_msgpack(files[file].text)])
    } == {}


def test_the_exceptions_exist() -> None:
    files = {
        place: [ROOT / place] if place.endswith(".py") else (ROOT / place).glob("*.py")
        for place in MSGPACK_WITHOUT_LIMIT
    }
    assert [
        place for place, paths in files.items() if not any(decodes_msgpack(path.read_text()) for path in paths)
    ] == []


@pytest.mark.parametrize(
    "line",
    [
        "import zlib; zlib.decompress(b'')",
        "from gzip import open",
        "import lzma",
        "import tarfile",
        "from zlib import decompressobj",
        "import shutil; shutil.unpack_archive('a')",
        "import gzip; gzip.GzipFile('a')",
        "import msgspec; msgspec.msgpack.decode(b'')",
        "import pickle",
    ],
)
def test_a_planted_use_is_refused(line: str) -> None:
    assert refusals("trimtab/x.py", ast.walk(ast.parse(line))) != []
