"""The command lines of the cluster autoscalers in a cluster: which flags belong to which status.

A cluster may have several autoscalers. Each writes a status ConfigMap of its own, which its command line names. In the
text of a setting or option, the flags of several autoscalers are separated by semicolons.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from itertools import pairwise

from trimtab.cluster import autoscaler_flags as f
from trimtab.cluster.cluster_autoscaler import parse_flags

StatusKey = tuple[str, str]
"""(namespace, name) of a status ConfigMap."""
Processes = tuple[tuple[str, ...], ...]
"""The arguments of each autoscaler's process."""


AUTOSCALER_BINARY = "cluster-autoscaler"
_IMAGE = re.compile(rf"(.+-)?{AUTOSCALER_BINARY}(-(amd64|arm64|ppc64le|s390x))?")
"""The last step of an image's name. The release images of some architectures, and copies by distributions, have a
longer one; images of other programs, such as `cluster-autoscaler-operator`, begin with it."""
MARKS_OF_PROCESSES = (AUTOSCALER_BINARY, f.THRESHOLD.name)
"""Texts of which the command line or the image of every autoscaler contains one."""


def autoscaler_arguments(image: str, words: Sequence[str]) -> tuple[str, ...] | None:
    """Returns the arguments of a cluster autoscaler that a container runs, without the name of the executable; None if
    the container runs another program, or its command line is not known.

    `words` are the container's command and arguments. The executable decides, wherever the image comes from. If the
    image starts it by itself, its name decides, or flags that no other program has together.
    """
    split_words = [part for word in words for part in _split_script(word)]
    for index, (previous, word) in enumerate(pairwise(["--", *split_words])):
        # After another word, the name may be a flag's value, or the Deployment that `kubectl rollout` restarts; a path
        # is neither. `--` stands before the program that a wrapper such as tini starts.
        is_started = previous in ("--", "-c", "exec") or ("/" in word and not previous.startswith("-"))
        if is_started and word.rpartition("/")[2] == AUTOSCALER_BINARY:
            return tuple(split_words[index + 1 :])
    flags = parse_flags(split_words)
    name = image.rpartition("/")[2].partition("@")[0].partition(":")[0]
    has_own_flags = "cloud-provider" in flags and f.THRESHOLD.name in flags
    return tuple(split_words) if has_own_flags or (words and _IMAGE.fullmatch(name)) else None


def _split_script(word: str) -> list[str]:
    """Returns the words of a shell's script that starts the autoscaler; any other word as it is."""
    if AUTOSCALER_BINARY not in word or not any(map(str.isspace, word)):
        return [word]
    try:
        return shlex.split(word)
    except ValueError:
        return word.split()


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
