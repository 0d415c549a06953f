"""Reads whole usage series from files, for verbs that need every sample in order instead of percentiles."""

from collections.abc import Iterable

from trimtab.cluster.config_error import ConfigError
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.usage_sources import USAGE_FILE_ENDINGS, unpack_usage
from trimtab.usage.file_forms import UsageForm
from trimtab.usage.metric_names import NOTHING_STATED, StatedQuantities
from trimtab.usage.repeated_series import RepeatedSeries
from trimtab.usage.series import Series
from trimtab.usage.usage_file import UsageFile


def read_usage_series(
    paths: Iterable[str], now: int | None = None, stated: StatedQuantities = NOTHING_STATED
) -> tuple[list[Series], list[str]]:
    """Returns every series of all files, in cores and bytes, and notes about what is left out.

    `stated`: what the user says of series whose name does not tell their quantity. Raises UsageError with all mistakes.
    """
    series, mistakes, notes, repeated = list[Series](), list[ConfigError](), list[str](), RepeatedSeries()
    for file, packed in live_cluster.read_paths(paths, USAGE_FILE_ENDINGS):
        content = unpack_usage(file, packed, mistakes)
        if content is None:
            continue
        usage_file = UsageFile(file.removesuffix(".gz"), content, stated.of_file(file), now)
        if usage_file.form is UsageForm.KUBERNETES:
            got = "Kubernetes objects, which contain no single samples"
            mistakes.append(ConfigError(file=file, expected="samples of usage", got=got))
            continue
        series += repeated.without_repeats(usage_file.iter_series())
        mistakes += usage_file.mistakes
        notes += usage_file.notes
    mistakes += repeated.mistakes()
    if mistakes:
        raise UsageError(mistakes)
    return series, notes + repeated.notes()
