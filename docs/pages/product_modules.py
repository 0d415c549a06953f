"""The modules of the product, imported: what they declare is what pages list."""

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType


def import_modules(package: ModuleType) -> Iterator[ModuleType]:
    """Yields every module below the package. Those that need an extra which is not installed are left out: they
    declare neither codes nor reports. Raises ModuleNotFoundError if a module of our own is missing."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if module.name.endswith("__main__"):
            continue
        try:
            yield importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("trimtab"):
                raise
