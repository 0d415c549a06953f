"""Options are fields of frozen dataclasses; a flag is declared once, and has one type in the whole program."""

import ast
from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import click
import pytest
from click.testing import CliRunner

import trimtab
from trimtab.cli.command_tree import iterate_contexts
from trimtab.cli.main import cli
from trimtab.cli.options import given_settings, takes
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.option import Argument, option

PACKAGE = Path(trimtab.__file__).parent
MAX_DECLARATIONS = 205
OUTPUT = "--output"
"""A report has the formats that its verb can write."""


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    user: Annotated[str | None, option("-u", "--user", help="Who.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    names: Annotated[tuple[str, ...], Argument("NAME...", is_required=False)] = ()
    color: Annotated[Color, option("--color", help="Which.")] = Color.RED
    side: Annotated[Literal["left", "right"] | None, option("--side", help="Where.")] = None
    count: Annotated[int, option("--count", minimum=1, maximum=9, help="How many.")] = 3
    share: Annotated[float, option("--share", minimum=0, maximum=1, help="How much.")] = 0.5
    files: Annotated[tuple[Path, ...], option("--file", help="Which files.")] = ()
    pairs: Annotated[tuple[tuple[Literal["a", "b"], str], ...], option("--pair", help="Kind and name.")] = ()
    pool: Annotated[str | None, option("--pool", repeats=True, help="One pool.")] = None
    is_loud: Annotated[bool, option("--loud", help="Loud.")] = False
    compares: Annotated[bool | None, option("--compare/--no-compare", help="Compare.")] = None
    length: Annotated[int, option("--word", convert=len, help="A word.")] = 0
    login: Login


def run(*arguments: str) -> Any:
    values: list[Options] = []

    @click.command()
    @takes(Options)
    def verb(options: Options) -> None:
        values.append(options)

    verb.main(args=list(arguments), standalone_mode=False)
    return values[0]


def test_without_arguments_each_field_has_its_default() -> None:
    assert run("--word", "") == Options(login=Login())


@pytest.mark.parametrize(
    ("arguments", "field", "value"),
    [
        (("a", "b"), "names", ("a", "b")),
        (("--color", "blue"), "color", Color.BLUE),
        (("--side", "left"), "side", "left"),
        (("--count", "9"), "count", 9),
        (("--share", "0.25"), "share", 0.25),
        (("--file", "x", "--file", "y"), "files", (Path("x"), Path("y"))),
        (("--pair", "a", "x", "--pair", "b", "y"), "pairs", (("a", "x"), ("b", "y"))),
        (("--pool", "web"), "pool", "web"),
        (("--loud",), "is_loud", True),
        (("--no-compare",), "compares", False),
        (("--word", "four"), "length", 4),
        (("-u", "me"), "login", Login(user="me")),
    ],
)
def test_the_type_of_a_field_says_what_the_option_takes(arguments: tuple[str, ...], field: str, value: object) -> None:
    assert getattr(run("--word", "", *arguments), field) == value


@pytest.mark.parametrize("arguments", [("--color", "green"), ("--side", "up"), ("--count", "10"), ("--pair", "c", "x")])
def test_a_value_of_another_type_is_a_mistake(arguments: tuple[str, ...]) -> None:
    with pytest.raises(click.UsageError):
        run("--word", "", *arguments)


def test_an_option_that_other_verbs_repeat_is_taken_once() -> None:
    with pytest.raises(UsageError) as error:
        run("--word", "", "--pool", "web", "--pool", "db")
    assert [(mistake.file, mistake.got) for mistake in error.value.mistakes] == [("--pool", "web and db")]


def test_a_process_gets_only_the_settings_that_the_command_line_has() -> None:
    @dataclass(frozen=True)
    class Process:
        listen: str | None = None
        overhead: str | None = None
        policies: tuple[str, ...] = ()
        rehearse: bool | None = None

    assert given_settings(Process(listen="x", overhead="server")) == {"overhead": "server"}


def list_options() -> dict[str, dict[str, list[str]]]:
    """Long name → type → the commands that have the option with this type."""
    types: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for context in iterate_contexts():
        for parameter in context.command.params:
            if isinstance(parameter, click.Option):
                for name in (*parameter.opts, *parameter.secondary_opts):
                    if name.startswith("--"):
                        types[name][_describe(name, parameter)].append(context.command_path)
    return types


def _describe(name: str, parameter: click.Option) -> str:
    kind = parameter.type
    words = [kind.name]
    if isinstance(kind, click.Choice) and name != OUTPUT:
        words += map(str, kind.choices)
    if isinstance(kind, click.IntRange | click.FloatRange):
        words += [str(kind.min), str(kind.max)]
    return " ".join([*words, "repeats" if parameter.multiple else "once", "flag" if parameter.is_flag else ""])


def test_no_flag_has_two_types() -> None:
    assert {name: dict(types) for name, types in list_options().items() if len(types) > 1} == {}


def count_calls(name: str) -> dict[str, int]:
    """Module → how often it calls the function."""
    counts = {}
    for file in PACKAGE.rglob("*.py"):
        calls = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
        if number := sum(ast.unparse(call.func) == name for call in calls):
            counts[str(file.relative_to(PACKAGE))] = number
    return counts


def test_options_of_click_are_made_in_one_module() -> None:
    assert list(count_calls("click.option")) == ["cli/options.py"]


def test_a_flag_is_declared_once() -> None:
    assert sum(count_calls("option").values()) <= MAX_DECLARATIONS


def test_what_follows_two_dashes_is_no_option() -> None:
    result = CliRunner().invoke(cli, ["lint", "--", "--rule"])
    assert "--only" not in result.stderr


def test_no_former_name_is_that_of_an_option_of_the_same_command() -> None:
    for context in iterate_contexts():
        former_names = getattr(context.command.callback, "former_names", {})
        assert not former_names.keys() & {name for option in context.command.params for name in option.opts}
