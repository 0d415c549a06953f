"""A process is named in five files: its declaration, its settings, its verb, its installation, and where doctor finds
it. Everything else iterates over the declarations, or reads a field of one."""

import ast

import pytest

from tests.architecture.source_words import SourceFile, source_files
from trimtab.cluster import processes
from trimtab.cluster.processes import PROCESSES, WEBHOOK, ProcessDeclaration
from trimtab.installation.names import PROCESSES as ALWAYS_INSTALLED
from trimtab.installation.names import WORKERS

MAX_FILES = 5
OTHER_MEANINGS = {
    "trimtab/admission/apiserver/admission_chain.py": (
        "webhook",
        "the step of the admission chain that calls webhooks",
    ),
    "trimtab/cli/install/command.py": ("webhook", "the mode of an installation in which a webhook changes pods"),
    "trimtab/cluster/overhead_writer.py": ("webhook", "the component that writes the overhead of pods"),
    "trimtab/diagnosis/check_metrics_api.py": ("metrics-api", "the name of a check of doctor"),
    "trimtab/diagnosis/check_webhook.py": ("webhook", "a noun, whose plural is formed"),
    "trimtab/idle/unjudged_objects.py": ("webhook", "a field of CustomResourceDefinitions"),
    "trimtab/installation/names.py": ("webhook", "the mode of an installation in which a webhook changes pods"),
    "webhook/app.py": ("webhook", "the name of the Flask application"),
}
"""File → a word that is also the name of a process, and what it means there."""
CONSTANTS = {name: value for name, value in vars(processes).items() if isinstance(value, ProcessDeclaration)}


def named_processes(file: SourceFile) -> set[str]:
    """The processes that a file names: by a text that is the name, or by the constant of the declaration."""
    forms = {form: each.name for each in PROCESSES for form in (each.name, each.name.replace("-", "_"), each.account)}
    texts = {node.value for node in file.nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    imported = {alias.name for node in file.nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    words = imported | {node.attr for node in file.nodes if isinstance(node, ast.Attribute)}
    is_reader = file.name == "trimtab/cluster/processes.py" or _imports_declarations(file)
    constants = {value.name for name, value in CONSTANTS.items() if is_reader and name in words}
    return constants | {forms[text] for text in texts & forms.keys()}


def _imports_declarations(file: SourceFile) -> bool:
    modules = {node.module for node in file.nodes if isinstance(node, ast.ImportFrom)}
    aliases = {alias.name for node in file.nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    return processes.__name__ in modules or "processes" in aliases


@pytest.mark.parametrize("process", [process.name for process in PROCESSES])
def test_a_process_is_named_in_at_most_five_files(process: str) -> None:
    others = {file for file, (word, _) in OTHER_MEANINGS.items() if word == process}
    files = {file.name for file in source_files() if process in named_processes(file)} - others
    assert len(files) <= MAX_FILES, sorted(files)


def test_each_other_meaning_still_occurs() -> None:
    words = {file.name: named_processes(file) for file in source_files() if file.name in OTHER_MEANINGS}
    assert words == {file: {word} for file, (word, _) in OTHER_MEANINGS.items()}


def test_every_declaration_is_a_constant_and_has_a_name_of_its_own() -> None:
    assert set(PROCESSES) == set(CONSTANTS.values())
    assert len({process.account for process in PROCESSES}) == len(PROCESSES)


def test_what_always_runs_and_what_needs_a_lease_follows_from_the_declarations() -> None:
    assert set(WORKERS) < set(ALWAYS_INSTALLED)
    assert set(ALWAYS_INSTALLED) - set(WORKERS) == {WEBHOOK.name}
