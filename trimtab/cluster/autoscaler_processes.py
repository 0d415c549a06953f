"""The command lines of the cluster autoscalers in a cluster: which flags belong to which status.

A cluster may have several autoscalers. Each writes a status ConfigMap of its own, which its command line names. In the
text of a setting or option, the flags of several autoscalers are separated by semicolons.
"""

import shlex
from collections.abc import Iterable, Sequence

from trimtab.cluster import autoscaler_flags as f
from trimtab.cluster.cluster_autoscaler import parse_flags

StatusKey = tuple[str, str]
"""(namespace, name) of a status ConfigMap."""
Processes = tuple[tuple[str, ...], ...]
"""The arguments of each autoscaler's process."""


def split_processes(text: str) -> Processes:
    """Returns the arguments of each process in a text that a shell would split into words, and in which semicolons
    separate the processes. Raises ValueError if a quotation mark is not closed."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";")
    lexer.whitespace_split, lexer.commenters = True, ""
    processes: list[list[str]] = [[]]
    for word in lexer:
        if word.strip(";"):
            processes[-1].append(word)
        else:
            processes.append([])
    return tuple(tuple(arguments) for arguments in processes if arguments)


def format_processes(processes: Iterable[Sequence[str]]) -> str:
    """Returns the text that `split_processes` splits into these arguments."""
    return "; ".join(shlex.join(arguments) for arguments in processes)


def key_of_process(arguments: Iterable[str]) -> StatusKey:
    """Returns the status that the process writes."""
    flags = parse_flags(arguments)
    return f.NAMESPACE.text_in(flags), f.STATUS_CONFIG_MAP.text_in(flags)


def arguments_of_status(processes: Processes, key: StatusKey) -> tuple[str, ...] | None:
    """Returns the arguments of the process that writes this status, or None if none of them does. A process that names
    no namespace may run in any. If there is only one process, and it names no status, its arguments hold for every
    status."""
    exact = next((one for one in processes if key_of_process(one) == key), None)
    if exact is not None:
        return exact
    for arguments in processes:
        flags = parse_flags(arguments)
        is_alone = len(processes) == 1 and f.STATUS_CONFIG_MAP.name not in flags
        if is_alone or (f.NAMESPACE.name not in flags and f.STATUS_CONFIG_MAP.text_in(flags) == key[1]):
            return arguments
    return None
