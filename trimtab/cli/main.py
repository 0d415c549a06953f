"""The group of all verbs; the module of a verb is imported when the verb runs.

Exit codes: 0 success (warnings included); 1 problems were found (with `--strict`, warnings too); 2 a mistake in a file
or an option (every mistake is named, nothing was done); 3 Trimtab or the cluster failed; 130 interrupted by Ctrl-C,
so that a script does not take it for a problem that was found.
"""

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from trimtab.cli.print_text import print_text
from trimtab.cli.terminal_progress import TerminalProgress
from trimtab.cluster.config_error import suggest_name
from trimtab.cluster.control_characters import replace_control_characters
from trimtab.inputs.command_faults import CommandFault, LoginError, RuntimeFailure, UsageError
from trimtab.inputs.progress import show_progress_by

VERBS = {
    "admit": ("trimtab.cli.admit.command", "Show how policies would change pods, and why."),
    "plan": ("trimtab.cli.plan.command", "Show which nodes can be drained, in which order, and why the others stay."),
    "simulate": ("trimtab.cli.simulate.command", "Simulate the whole compaction and show what is left."),
    "recommend": ("trimtab.cli.recommend.command", "Recommend requests from usage."),
    "recommender": ("trimtab.cli.recommender", "Run the recommender: collect usage and publish recommendations."),
    "compactor": (
        "trimtab.cli.compactor.command",
        "Run the compactor, which drains nodes; show its status and history; pause and resume it.",
    ),
    "drain": ("trimtab.cli.drain.command", "Drain nodes on order: plan, waves within budgets, resume, release."),
    "machines": (
        "trimtab.cli.machines.command",
        "Rank machine types for a workload, and set the autoscaler's priorities.",
    ),
    "fleet": (
        "trimtab.cli.fleet.command",
        "Recommend, plan and report for many clusters, on this machine or on Spark.",
    ),
    "scheduler": (
        "trimtab.cli.scheduler",
        "Print a kube-scheduler that fills nodes one after the other: configuration, manifests.",
    ),
    "pools": ("trimtab.cli.pools.command", "Check pools; import them from another compactor's configuration."),
    "policies": ("trimtab.cli.policies.command", "Check, test, list and explain policies; print their schema."),
    "reserved": ("trimtab.cli.reserved.command", "Show what is reserved on nodes, by formula and as measured."),
    "lint": ("trimtab.cli.lint.command", "Predict where autoscalers, budgets and limits work against each other."),
    "runtimeclass": ("trimtab.cli.runtimeclass.command", "Measure what a sandbox runtime costs for each pod."),
    "idle": (
        "trimtab.cli.idle.command",
        "Show workloads that could sleep, volume claims that are mostly empty, and objects that no pod names.",
    ),
    "vpa": ("trimtab.cli.vpa.command", "Simulate a VPA on usage, and propose VPAs."),
    "autoscaler": ("trimtab.cli.autoscaler.command", "Replay the cluster autoscaler, and propose its flags."),
    "replay": ("trimtab.cli.replay.command", "Replay recorded days: what they would have cost with other settings."),
    "report": ("trimtab.cli.report.command", "Join reports in one file for others to read, the sums first."),
    "savings": ("trimtab.cli.savings.command", "Show what removed nodes saved, by pool and by team."),
    "top": (
        "trimtab.cli.top.command",
        "Watch pools and nodes live: which nodes are drained next, and what a drain waits for.",
    ),
    "capture": ("trimtab.cli.capture", "Write a snapshot of the cluster to a file."),
    "why": (
        "trimtab.cli.why.command",
        "Show why a pod or a node is as it is: policies, the compactor's decisions, Events, log.",
    ),
    "explain": ("trimtab.cli.explain.command", "Explain a reason code, a setting or a field, offline."),
    "certs": ("trimtab.cli.certs", "Issue, rotate and check the webhook's certificates."),
    "install": ("trimtab.cli.install.command", "Print, apply or remove what Trimtab needs in a cluster."),
    "doctor": ("trimtab.cli.doctor.command", "Check the installation, and show the fix for each finding."),
    "webhook": ("trimtab.cli.webhook", "Serve the admission webhook."),
    "watchdog": ("trimtab.cli.watchdog", "Run the watchdog: compare running pods with policies."),
    "metrics-api": (
        "trimtab.cli.metrics_api.command",
        "Serve custom metrics for HPAs, check their rules, propose an HPA.",
    ),
    "completion": ("trimtab.cli.completion", "Print a script that completes commands in a shell."),
    "version": ("trimtab.cli.help_commands", "Print the version."),
    "help": ("trimtab.cli.help_commands", "Print the help of a command."),
    "demo": ("trimtab.cli.demo.command", "Run the webhook and a compaction on this machine, without a cluster."),
}
"""Verb → its module, and its help in one line."""

GROUPS = {
    "See what is there, and why": ("why", "explain", "top", "savings", "report", "idle", "fleet", "capture"),
    "Size pods": ("admit", "policies", "recommend", "lint", "vpa", "runtimeclass"),
    "Compact nodes": (
        "plan",
        "simulate",
        "replay",
        "drain",
        "pools",
        "machines",
        "reserved",
        "autoscaler",
        "scheduler",
    ),
    "Operate Trimtab": ("install", "doctor", "certs", "demo", "completion", "version", "help"),
    "Serve: run a process in a cluster": ("webhook", "compactor", "recommender", "watchdog", "metrics-api"),
}
"""Title of a group in the help → its verbs."""

EXTRAS = {
    "advice": ("machines", "reserved", "lint", "vpa", "autoscaler", "idle"),
    "metrics": ("metrics-api",),
    "fleet": ("fleet",),
}
"""Extra of the package → the verbs that it has. The other verbs and all processes need none of their modules."""

VERB_ATTRIBUTES = {"version": "print_version", "help": "print_help"}
"""Verb → the name of its command in its module; `verb` for all verbs that are not here."""

COMMANDS_BY_GUESS = {
    "uninstall": "install --remove",
    **{name: f"compactor {name}" for name in ("history", "pause", "release", "resume", "status")},
}
"""A verb that does not exist, and that new users try → the command that does it."""

EXIT_FOUND, EXIT_USAGE, EXIT_FAILED, EXIT_INTERRUPTED = 1, 2, 3, 130


HELP_OPTIONS = ("-h", "--help")


class SuggestingGroup(click.Group):
    """A click group that names the most similar command if the given one does not exist.

    It gives its commands the help options itself: click creates the help option of a command once, with the names of
    the first context that asks, and that context may have no parent.
    """

    def __init__(self, *arguments: Any, context_settings: Mapping[str, Any] | None = None, **settings: Any) -> None:
        own = {"help_option_names": list(HELP_OPTIONS), **(context_settings or {})}
        super().__init__(*arguments, context_settings=own, **settings)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            ctx.fail(f"There is no command {name!r}; {self.suggest_command(ctx, name)}")
        resolved, command, rest = super().resolve_command(ctx, args)
        if command is None:
            return resolved, command, rest
        # Imported here, because `trimtab --help` needs no options.
        from trimtab.cli.options import refuse_former_options

        refuse_former_options(command, rest)
        return resolved, command, rest

    def suggest_command(self, ctx: click.Context, name: str) -> str:
        """Returns the end of a sentence that names the most similar command, or all commands of the group."""
        names = self.list_commands(ctx)
        return suggest_name(name, names) or "there are " + ", ".join(names)


class LazyGroup(SuggestingGroup):
    """A click group that imports the modules of some of its commands only when they are used."""

    def __init__(self, *arguments: Any, modules: Mapping[str, str], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.modules = modules
        """Command → the module of its command line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *self.modules])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.modules:
            command = importlib.import_module(self.modules[cmd_name]).verb
            assert isinstance(command, click.Command)
            return command
        return super().get_command(ctx, cmd_name)


class Verbs(SuggestingGroup):
    """A click group that imports a verb's module only when the verb runs, which keeps the start-up time short."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def suggest_command(self, ctx: click.Context, name: str) -> str:
        if name in COMMANDS_BY_GUESS:
            return f"use `trimtab {COMMANDS_BY_GUESS[name]}`"
        return super().suggest_command(ctx, name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        name, _ = VERBS[cmd_name]
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            extra = next((extra for extra, verbs in EXTRAS.items() if cmd_name in verbs), None)
            if extra is None or not str(error.name).startswith("trimtab."):
                raise
            raise click.UsageError(
                f"The verb {cmd_name!r} is in the extra {extra}, which is not installed: run "
                f"`pip install 'trimtab[{extra}]'`"
            ) from None
        verb = getattr(module, VERB_ATTRIBUTES.get(cmd_name, "verb"))
        assert isinstance(verb, click.Command)
        return verb

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the verb. An error of any kind may quote texts of others, so control characters in it are replaced."""
        try:
            return super().invoke(ctx)
        except CommandFault as fault:
            raise _CommandError(fault) from None
        except KeyboardInterrupt:
            print_text("interrupted", err=True)
            ctx.exit(EXIT_INTERRUPTED)
        except click.ClickException as error:
            vars(error)["message"] = replace_control_characters(error.message)
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, VERBS[name][1]) for name in names])


@click.group(cls=Verbs, context_settings={"max_content_width": 110})
@click.version_option(None, "-V", "--version", package_name="trimtab", message="%(prog)s %(version)s")
def cli() -> None:
    """A Kubernetes admission webhook and node-pool compactor that says why.

    Every verb reads files or a cluster, and changes nothing unless its help says that it does.
    """
    show_progress_by(TerminalProgress())


class _CommandError(click.ClickException):
    """A fault of a command, as click prints it."""

    def __init__(self, fault: CommandFault) -> None:
        super().__init__(replace_control_characters(str(fault)))
        self._fault = fault
        vars(self)["exit_code"] = EXIT_FAILED if isinstance(fault, RuntimeFailure) else EXIT_USAGE

    def show(self, file: object = None) -> None:
        if isinstance(self._fault, UsageError):
            for mistake in self._fault.mistakes:
                print_text(str(mistake), err=True)
            count = len(self._fault.mistakes)
            print_text(f"{count} mistake{'s' if count > 1 else ''} found; nothing was done.", err=True)
        elif isinstance(self._fault, LoginError):
            print_text(f"error: {self.message}", err=True)
        else:
            print_text(self.message, err=True)


def main() -> None:
    """Run the command line; this is the entry point of the scripts `trimtab` and `kubectl-trimtab`."""
    try:
        # "kubectl NAME" for a kubectl plugin (a script called kubectl-NAME); otherwise None, for click's default.
        script = Path(sys.argv[0]).name
        plugin = script.removeprefix("kubectl-")
        cli(prog_name=f"kubectl {plugin}" if plugin != script else None, standalone_mode=True)
    except BrokenPipeError:
        # The reader ended first, as in `trimtab … | head`. A closed stderr keeps Python from reporting it again at
        # exit.
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:
        if sys.flags.dev_mode:
            raise
        print_text(f"trimtab failed because of a bug: {type(error).__name__}: {error}", err=True)
        print_text("To see the traceback, run: python -X dev -m trimtab …", err=True)
        sys.exit(EXIT_FAILED)
