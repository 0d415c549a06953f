"""The table of the cluster autoscaler's flags is whole and true: the code names no other flag, and follows those that
the table says it follows."""

import ast
import importlib
import inspect
import re
from operator import attrgetter
from pathlib import Path

import pytest

from docs.generate import ROOT
from tests.architecture.source_words import source_files
from trimtab.cluster import autoscaler_flags
from trimtab.cluster.autoscaler_flags import FLAGS, OBEYED_FLAGS, AutoscalerFlag

TABLE = "trimtab/cluster/autoscaler_flags.py"
OF_ONE_WORD = re.compile(r"[a-z]+")
"""Flags such as --namespace, whose names are words that other texts use."""
OWN_OPTIONS = {"scale-down", "status-config-map", "ignore-daemonsets"}
"""Options of Trimtab's own commands, and of `kubectl drain`."""
FAMILIES = {re.match(r"[a-z]+-[a-z]+", name)[0] for name in FLAGS if not OF_ONE_WORD.fullmatch(name)}  # type: ignore[index]
"""The first two words of each flag: a flag that begins with them is one of the autoscaler's about the removal of
nodes."""


def flags_in(text: str) -> set[str]:
    """Returns the flags in a text that begin like one of the table."""
    named = {match.rstrip("-") for match in re.findall(r"(?<![\w-])--([a-z][a-z0-9-]+)", text)}
    return {name for name in named - OWN_OPTIONS if re.match(r"[a-z]+-[a-z]+|.*", name)[0] in FAMILIES}  # type: ignore[index]


def pages() -> list[Path]:
    return [path for folder in ("docs", "deploy", "trimtab") for path in (ROOT / folder).rglob("*.md")]


def test_every_flag_that_a_text_names_is_in_the_table() -> None:
    texts = {file.name: file.text for file in source_files()} | {str(path): path.read_text() for path in pages()}
    unknown = {name: flags - FLAGS.keys() for name, text in texts.items() if (flags := flags_in(text))}
    assert {name: flags for name, flags in unknown.items() if flags} == {}


def test_a_planted_flag_is_seen() -> None:
    assert flags_in("with --scale-down-weather=fair and --output=json") == {"scale-down-weather"}


def test_no_other_module_writes_the_name_of_a_flag() -> None:
    names = {name for name in FLAGS if not OF_ONE_WORD.fullmatch(name)} - {"cluster-autoscaler-status"}
    named = {
        file.name: strings
        for file in source_files()
        if file.name != TABLE and (strings := {n.value for n in file.nodes if isinstance(n, ast.Constant)} & names)
    }
    assert named == {}


CONSTANTS = {flag.name: name for name, flag in vars(autoscaler_flags).items() if isinstance(flag, AutoscalerFlag)}


@pytest.mark.parametrize("flag", OBEYED_FLAGS, ids=attrgetter("name"))
def test_what_follows_a_flag_names_it(flag: AutoscalerFlag) -> None:
    modules = []
    for reader in flag.readers:
        module_name, _, function = reader.partition(":")
        modules.append(importlib.import_module(module_name))
        assert attrgetter(function)(modules[-1])
    assert re.search(rf"\b{CONSTANTS[flag.name]}\b", inspect.getsource(modules[0]))


def test_every_flag_says_what_becomes_of_it_in_a_sentence() -> None:
    assert [flag.name for flag in FLAGS.values() if not re.fullmatch(r"[A-Z].*\.", flag.effect)] == []


def test_every_default_is_a_value() -> None:
    assert [flag.name for flag in FLAGS.values() if not flag.is_valid(flag.default) and flag.default] == []
