"""An action of a policy stands in its own files, in the list of all actions and in the type of a policy."""

import ast
from dataclasses import fields
from typing import get_args

import pytest

from tests.architecture.source_words import SourceFile, source_files
from trimtab.policy.all_actions import ACTIONS
from trimtab.policy.podpolicy import Actions

MAX_FILES = 3
"""The type of a policy, and two files more. The list of all actions names modules."""
SETTINGS = {field.name: get_args(field.type)[0].__name__ for field in fields(Actions)}
"""Action → the class of its settings."""
OWN_FILES = {"requests": "request", "annotations": "labels"}
"""Action → how the names of its own files begin, where that is not its name."""


def is_own_file(file: SourceFile, action: str) -> bool:
    folder, _, name = file.name.rpartition("/")
    return folder == "trimtab/policy/actions" and name.startswith(OWN_FILES.get(action, action))


def names_action(node: ast.AST, action: str) -> bool:
    """Whether the node imports the class of the settings, or names the action's field: as an attribute of `actions`, or
    as a whole string. Strings of one word also name fields of pods, so they do not count."""
    match node:
        case ast.ImportFrom(module=str(module), names=names):
            return module.startswith("trimtab.policy.actions") and SETTINGS[action] in [one.name for one in names]
        case ast.Attribute(value=ast.Attribute(attr="actions") | ast.Name(id="actions"), attr=name):
            return name == action
        case ast.Constant(value=str(text)):
            return "_" in action and text == action
    return False


@pytest.mark.parametrize("action", [action.name for action in ACTIONS])
def test_few_files_name_an_action(action: str) -> None:
    others = [file for file in source_files() if not is_own_file(file, action)]
    files = [file.name for file in others if any(names_action(node, action) for node in file.nodes)]
    assert "trimtab/policy/podpolicy.py" in files
    assert len(files) <= MAX_FILES, files


def test_every_action_of_the_language_is_in_the_list() -> None:
    names = {action.name for action in ACTIONS}
    assert names == SETTINGS.keys(), f"add YOURS.ACTION to trimtab/policy/all_actions.py: {names ^ SETTINGS.keys()}"
    assert len(names) == len(ACTIONS), "an action stands in trimtab/policy/all_actions.py twice"
