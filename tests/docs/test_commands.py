"""Every `trimtab …` that a page shows is a command that there is, with options that it takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import click
import pytest

from tests.docs.test_links import PAGES, ROOT
from trimtab.cli.command_tree import iterate_contexts

_SHOWN = re.compile(r"^(?:    |\$ )?(?:[A-Z_]+=\S+ )*(?:\.venv/bin/|kubectl )?trimtab (.+)$", re.MULTILINE)
_BLOCKS = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_KINDS = ("", "sh", "console", "bash")

_COMMANDS = {context.command_path: context.command for context in iterate_contexts()}


def shown(page: Path) -> Iterator[str]:
    """Lines of code blocks, fenced or indented, that begin with the command; what a shell adds is cut off."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    fenced = [line for kind, block in _BLOCKS.findall(text) if kind in _KINDS for line in block.splitlines()]
    indented = [line for line in text.splitlines() if line.startswith("    ")]
    for line in [*fenced, *indented]:
        result = _SHOWN.match(line)
        if result:
            yield re.split(r"\s+#|\s[|>;]|\s&&|\s&$", result[1])[0].strip()


CASES = [(page, line) for page in PAGES for line in dict.fromkeys(shown(page))]


def problem(line: str) -> str:
    """Why this is no command of ours; empty where it is one. Names in capitals stand for what the reader has."""
    words = shlex.split(line.replace("[", "").replace("]", "").replace("…", ""))
    path = "trimtab"
    command = _COMMANDS[path]
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        path, name = f"{path} {words[0]}", words.pop(0)
        if path not in _COMMANDS:
            return f"no {name}"
        command = _COMMANDS[path]
    takes = {option for one in command.params if not getattr(one, "is_flag", False) for option in one.opts}
    words = [word for before, word in pairwise(["", *words]) if before not in takes or not before.startswith("-")]
    options = {option for one in command.params for option in (*one.opts, *one.secondary_opts)} | {"-h", "--help"}
    return ", ".join(
        f"no {word}" for word in words if re.match(r"--?[a-z]", word) and word.split("=")[0] not in options
    )


@pytest.mark.parametrize(("page", "line"), CASES, ids=[f"{page.stem}: {line}" for page, line in CASES])
def test_a_command_that_a_page_shows_is_one(page: Path, line: str) -> None:
    assert problem(line) == "", page.relative_to(ROOT)


def test_there_are_many_and_a_wrong_one_is_found() -> None:
    assert len(CASES) > 40
    assert problem("plan --cluster x --explain node y") == ""
    assert problem("plan --clusters x") == "no --clusters"
    assert problem("compactor undo") == "no undo"


def test_whoever_applies_as_a_page_says_keeps_the_image() -> None:
    """Options are not remembered: without it, every process would ask for an image that no node can pull."""
    applied = [
        (page, line) for page, line in CASES if line.startswith("install --apply") and page.parent.name == "how-to"
    ]
    assert len(applied) > 3
    assert [(page.name, line) for page, line in applied if "--image" not in line] == []


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_helm_is_told_the_namespace_of_the_release(page: Path) -> None:
    matches = re.findall(
        r"helm (?:install|upgrade|rollback|uninstall) trimtab\b[^`\n]*", page.read_text(encoding="utf-8")
    )
    assert [command for command in matches if "--namespace trimtab-system" not in command] == []
