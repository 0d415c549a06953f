"""The command behaves as kubectl does: options, names of commands, kubeconfig errors, lists in pipes."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from tests.reasons import has_facts
from trimtab.cli.command_tree import iterate_contexts
from trimtab.cli.main import HELP_OPTIONS, cli

TWO = """
apiVersion: v1
kind: Pod
metadata: {name: cart, namespace: shop, labels: {app: cart, tier: front}}
spec: {containers: [{name: a, image: a, resources: {limits: {cpu: 2}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: log, namespace: ops, labels: {app: log}}
spec: {containers: [{name: a, image: a, resources: {limits: {cpu: 2}}}]}
"""
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: one, context: {cluster: c}}]
current-context: one
"""


def run(*arguments: object, **environ: str) -> Result:
    return CliRunner(env=environ).invoke(cli, [str(argument) for argument in arguments])


@pytest.fixture
def pods(tmp_path: Path) -> Path:
    path = tmp_path / "pods.yaml"
    path.write_text(TWO)
    return path


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("admitt",), "did you mean 'admit'?"),
        (("policies", "explan"), "did you mean 'explain'?"),
        (("compactor", "histroy"), "did you mean 'history'?"),
        (("machines", "rnak"), "did you mean 'rank'?"),
        (("pools", "zzz"), "there are check, import"),
        (("uninstall",), "`trimtab install --remove`"),
        (("status",), "`trimtab compactor status`"),
        (("why", "nod"), "did you mean 'node'?"),
        (("why", "pod-without-ownr"), "did you mean pod-without-owner"),
        (("why", "shop-5"), "`trimtab why node NAME`"),
    ],
)
def test_a_command_that_does_not_exist_is_answered_with_the_nearest(arguments: tuple[str, ...], advice: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, advice in result.output) == (2, True), result.output


def test_every_command_that_writes_a_file_knows_the_short_option() -> None:
    options = {context.command_path: [one.opts for one in context.command.params] for context in iterate_contexts()}
    writing = {path: opts for path, all_opts in options.items() for opts in all_opts if "--output-file" in opts}
    assert {
        "trimtab recommend",
        "trimtab pools import",
        "trimtab install",
        "trimtab machines priorities",
        "trimtab scheduler config",
        "trimtab policies compile",
        "trimtab plan",
        "trimtab capture",
    } <= writing.keys()
    assert [path for path, opts in writing.items() if "-O" not in opts] == []


@pytest.mark.parametrize("arguments", [("install",), ("policies", "compile", "--to", "mutatingadmissionpolicy")])
def test_manifests_are_written_to_the_file_of_the_short_option(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    path = tmp_path / "out.yaml"
    result = run(*arguments, "-O", path)
    assert (result.stdout, path.read_text().startswith("apiVersion:")) == ("", True)


def test_a_policy_that_does_not_exist_is_answered_with_the_nearest_or_with_all() -> None:
    assert "did you mean 'no-cpu-limits'?" in run("policies", "explain", "no-cpu-limit").output
    assert "the policies are " in run("policies", "explain", "zzzzzzz").output


def test_the_words_that_people_try_first_work() -> None:
    assert run("version").output.startswith("trimtab ")
    assert run("-V").exit_code == 0
    assert "Show the last decisions" in run("help", "compactor", "history").output
    assert "did you mean 'admit'?" in run("help", "admitt").output


@pytest.mark.parametrize("verb", [("doctor",), ("idle", "--cluster", "live"), ("compactor", "status"), ("capture",)])
def test_a_kubeconfig_that_does_not_exist_is_reported_as_kubectl_does(verb: tuple[str, ...], tmp_path: Path) -> None:
    missing = tmp_path / "nosuch"
    result = run(*verb, "--kubeconfig", missing)
    assert result.exit_code == 2
    assert has_facts(result.output, f"stat {missing}", "no such file")


def test_without_a_kubeconfig_the_command_says_which_file_it_looked_for(tmp_path: Path) -> None:
    result = run("doctor", KUBECONFIG=str(tmp_path / "nosuch"))
    assert has_facts(result.output, f"stat {tmp_path}/nosuch", "no such file", "kubeconfig")


def test_a_context_that_does_not_exist_is_named_with_those_that_do(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(KUBECONFIG)
    result = run("doctor", "--kubeconfig", tmp_path / "config", "--context", "two")
    assert result.exit_code == 2
    assert has_facts(result.output, 'context "two"', "not exist", "one")


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ((), {"cart", "log"}),
        (("-n", "shop"), {"cart"}),
        (("-n", "shop", "-n", "ops"), {"cart", "log"}),
        (("-n", "shop", "-A"), {"cart", "log"}),
        (("-l", "app=log"), {"log"}),
        (("-l", "tier"), {"cart"}),
        (("-l", "app in (cart, log),!tier"), {"log"}),
    ],
)
def test_pods_are_selected_as_kubectl_does(options: tuple[str, ...], names: set[str], pods: Path) -> None:
    rows = run("admit", "-f", pods, *options).stdout.splitlines()
    assert {name for name in ("cart", "log") if any(row.startswith(f"Pod {name};") for row in rows)} == names


def test_running_pods_are_selected_by_namespace(pods: Path) -> None:
    everything = run("admit", "--running", "--cluster", pods)
    shop = run("admit", "--running", "--cluster", pods, "-n", "shop")
    assert has_facts(everything.stdout, "2 of 2", "running pods")
    assert has_facts(shop.stdout, "1 of 1", "running pod")


def test_an_invalid_selector_and_an_empty_selection_are_mistakes(pods: Path) -> None:
    assert "--selector: expected" in run("admit", "-f", pods, "-l", "a==(").output
    result = run("admit", "-f", pods, "-n", "shop", "-l", "app=nosuch")
    assert (result.exit_code, "--namespace and --selector select" in result.output) == (2, True)


def test_lint_and_idle_report_only_the_namespaces_that_are_named(pods: Path) -> None:
    for verb in (("lint", "-f", pods), ("idle", "--cluster", pods)):
        assert run(*verb, "-n", "shop").exit_code == 0
        assert "ops" not in run(*verb, "-n", "shop").stdout.replace("stops", "")
        assert run(*verb, "-n", "nosuch").exit_code == 2


def test_a_list_in_a_pipe_has_one_line_for_each_object() -> None:
    lines = run("policies", "list").stdout.splitlines()
    assert lines[0].split()[:3] == ["PRIORITY", "NAME", "MODE"]
    names = [line.removeprefix("podpolicy/") for line in run("policies", "list", "-o", "name").stdout.splitlines()]
    assert [line.split()[1] for line in lines[1:]] == names
    assert run("policies", "list", "-o", "wide").stdout.splitlines()[0].endswith("ACTIONS")


def test_a_list_without_headers_has_only_its_objects() -> None:
    lines = run("policies", "list").stdout.splitlines()
    actual_lines = run("policies", "list", "--no-headers").stdout.splitlines()
    assert [line.split() for line in actual_lines] == [line.split() for line in lines[1:]]


def test_a_file_without_headers_has_only_the_objects_too(tmp_path: Path) -> None:
    assert run("policies", "list", "--no-headers", "-O", tmp_path / "list").exit_code == 0
    assert "PRIORITY" not in (tmp_path / "list").read_text()


def test_o_of_capture_is_a_form_and_not_a_file(tmp_path: Path) -> None:
    result = run("capture", "-o", "snapshot", "--kubeconfig", tmp_path / "nosuch")
    assert has_facts(result.output, "--output", "json", "snapshot", "-O")


def test_every_group_gives_its_commands_the_help_options_by_itself() -> None:
    """Without those of `trimtab`: click remembers the help option of the first context that asks."""
    groups = [context.command for context in iterate_contexts() if isinstance(context.command, click.Group)]
    names = {group.name: tuple(group.context_settings.get("help_option_names", ())) for group in groups}
    assert len(groups) > 10
    assert {name: options for name, options in names.items() if options != HELP_OPTIONS} == {}


def test_every_command_has_the_short_option_for_help() -> None:
    contexts = list(iterate_contexts())
    assert len(contexts) > 50
    assert [context.command_path for context in contexts if "-h, --help" not in context.get_help()] == []
