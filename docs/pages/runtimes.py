"""docs/reference/runtimes.md: which runtimes read the limits of their container, and what shows them."""

from collections.abc import Iterable

from trimtab.cluster.runtime_patterns import NOT_ZERO, OPTION_VALUE, OWN_SIZE, Runtime, SizeSetting, TextPattern
from trimtab.cluster.runtime_signs import MAX_CHARACTERS
from trimtab.cluster.runtimes import RUNTIMES
from trimtab.policy import reasons as r

MAX_NAMES = 6
"""The number of names of one list that the page has."""
_READ, _UNKNOWN = r.CONTAINER_READS_LIMIT.name, r.RUNTIME_UNKNOWN.name
_HEAD = f"""\
# What reads a limit

A JVM gives its heap a share of the memory limit, and Go starts as many threads as the cpu limit has cores. Without the
limit, they would size themselves by the whole node. So `limits: {{memory: remove}}` in a policy leaves a limit that
something in the container reads, with the reason [`{_READ}`](reasons.md#{_READ}), which names what
reads it. `trimtab lint` does not advise to remove such a limit.

These places of a pod are read, in this order:

1. `resourceFieldRef: limits.*` in environment variables and volumes, for every resource;
2. for the memory limit, an emptyDir volume with `medium: Memory` and no `sizeLimit`: the kubelet gives it the size of
   the pod's memory limit, and without a limit in one of the containers that of the whole node;
3. options in the values of environment variables, whatever their names are, and in `command` and `args`, also within
   the text of a shell;
4. names of environment variables;
5. names of programs and files in `command` and `args`;
6. words in the name and the tag of the image;
7. labels and annotations of the pod, for containers that show no runtime themselves: keys with the word `runtime`,
   `language`, `lang` or `framework`, such as `app.kubernetes.io/runtime: java`, and keys of operators that add an agent
   for a language, such as `instrumentation.opentelemetry.io/inject-java`.

A setting of a fixed size, such as `-Xmx`, frees the limit: the policy then removes it. Zero, or no value, is no size,
because it means the default.

## What cannot be seen

- Values from ConfigMaps and Secrets (`valueFrom`, `envFrom`), arguments and variables in the image itself, and
  configuration files. A variable of the list whose value is not in the pod still shows its runtime.
- What a program does by itself: a Go, Rust or C++ program may read its cgroup without any sign in the pod.
- The version of a runtime. Old versions read no limits; their limits stay as well.
- What is behind the first {MAX_CHARACTERS // 1024} KiB of a variable or of a command line.

Where nothing shows the runtime, the policy decides: `unknownRuntime: remove`, the default, removes the limit, and the
record says that the runtime was not known. `unknownRuntime: keep` leaves it, with the reason
[`{_UNKNOWN}`](reasons.md#{_UNKNOWN}). To show the runtime of your own images, set the label
`app.kubernetes.io/runtime` in the pod's template, for example to `go`, `java`, `dotnet`, `nodejs` or `python`.

An action with `required: true` removes every limit. A [compiled policy](../explanation/without-a-webhook.md) finds the
same signs, but no settings that free a limit.

The text itself is not stored: a [capture](../how-to/plan-a-pool.md#1-take-a-snapshot) holds only which runtime
of this list a container shows, and which limits are free.

## The runtimes

Of long lists, the page has the first names; `trimtab/cluster/runtimes.py` has all, the patterns of other names, and the
sources.

"""


def page() -> str:
    """Returns the text of the page."""
    sections = "\n".join(_section(runtime) for runtime in RUNTIMES)
    return f"{_HEAD}{sections}"


def _section(runtime: Runtime) -> str:
    title = runtime.name[0].upper() + runtime.name[1:]
    rows = [
        ("reads", _listed(runtime.reads) or "no limit"),
        ("words in an image", _codes(runtime.words)),
        ("last part of an image's name", _codes(runtime.images)),
        ("further words in labels", _codes(runtime.label_words)),
        ("variables", _codes(runtime.usual_variables)),
        (
            "variables with a certain value",
            _codes(f"{telling.variable}={telling.expression}" for telling in runtime.telling_values),
        ),
        ("options that take a share of a limit", _patterns(runtime.limit_options)),
        ("programs", _codes(runtime.programs)),
        ("files", _codes(f"*.{suffix}" for suffix in runtime.files)),
        *(("frees " + _listed(setting.frees), _setting(setting)) for setting in runtime.settings),
        ("reads memory in any case", _patterns(runtime.overriding_options)),
    ]
    lines = "\n".join(f"- {name}: {text}" for name, text in rows if text)
    return f"### {title}\n\n{lines}\n"


def _listed(resources: Iterable[str]) -> str:
    return " and ".join(resources)


def _codes(texts: Iterable[str]) -> str:
    """Returns the first names of a list, and the number of the others: the reason of a container names its own sign."""
    names = [f"`{text}`" for text in texts]
    more = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {more} more" if more > 1 else f", {names[-1]}" if more == 1 else "")


def _patterns(patterns: Iterable[TextPattern]) -> str:
    return ", ".join(map(_pattern, patterns))


def _pattern(pattern: TextPattern) -> str:
    text = pattern.expression or pattern.literal
    if not text.endswith(OWN_SIZE):
        return f"`{text}`"
    return f"`{text.removesuffix(OWN_SIZE).removesuffix(OPTION_VALUE)}` with a size"


def _setting(setting: SizeSetting) -> str:
    if setting.options:
        return _patterns(setting.options)
    value = " with a size" if setting.value == NOT_ZERO else f" with a value like `{setting.value}`"
    return f"the variable `{setting.variable}`{value}"
