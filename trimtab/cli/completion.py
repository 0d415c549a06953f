"""Shell completion: `trimtab completion bash|zsh|fish`, and the program that kubectl calls for `kubectl trimtab`.

kubectl calls the executable `kubectl_complete-trimtab` on the PATH with the words after `kubectl trimtab`, and expects
the format of cobra's `__complete`: a value and its description on each line, and a directive at the end
(k8s.io/kubectl/pkg/cmd/plugin, plugin_completion.go; github.com/spf13/cobra, completions.go).
"""

import sys
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from trimtab.cli.main import cli
from trimtab.cli.print_text import print_document

SHELLS = ("bash", "zsh", "fish")
PROGRAM, VARIABLE = "trimtab", "_TRIMTAB_COMPLETE"
NO_FILES, FILES = 4, 0
"""cobra's directives ShellCompDirectiveNoFileComp (do not complete file names) and ShellCompDirectiveDefault (complete
them)."""

_INSTALL = {
    "bash": "# In ~/.bashrc:  source <(trimtab completion bash)\n",
    "zsh": "# In ~/.zshrc:  source <(trimtab completion zsh)\n",
    "fish": "# As ~/.config/fish/completions/trimtab.fish\n",
}


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def verb(shell: str) -> None:
    """Print a script that completes commands, options and names in this shell.

    `source <(trimtab completion bash)`. For `kubectl trimtab`, kubectl's own completion is enough: it calls
    kubectl_complete-trimtab, which is installed next to kubectl-trimtab. Names of policies, pools, nodes and namespaces
    are read from the cluster of the kubeconfig, for at most two seconds.
    """
    print_document(completion_script(shell))


def completion_script(shell: str) -> str:
    """Returns the completion script of this shell."""
    completer_class = get_completion_class(shell)
    assert completer_class is not None
    completer = completer_class(cli, {}, PROGRAM, VARIABLE)
    # Not BashComplete.source, which starts bash to ask for its version.
    return _INSTALL[shell] + ShellComplete.source(completer).lstrip("\n")


def find_completions(words: Sequence[str], incomplete: str) -> list[CompletionItem]:
    """Returns the completions of the word `incomplete`, which follows `words` on the command line."""
    return ShellComplete(cli, {}, PROGRAM, VARIABLE).get_completions(list(words), incomplete)


def format_for_cobra(items: Sequence[CompletionItem]) -> str:
    """Returns the items in the format of cobra's `__complete`."""
    values = [item for item in items if item.type == "plain"]
    lines = [f"{item.value}\t{item.help}" if item.help else str(item.value) for item in values]
    directive = NO_FILES if values or not items else FILES
    return "".join(f"{line}\n" for line in [*lines, f":{directive}"])


def complete_for_kubectl() -> None:
    """Run `kubectl_complete-trimtab`: the arguments are the words after `kubectl trimtab`, the last one incomplete."""
    *words, incomplete = sys.argv[1:] or [""]
    print_document(format_for_cobra(find_completions(words, incomplete)))
