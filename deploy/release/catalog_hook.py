"""Hatch's hook before a wheel, an sdist or an editable installation: what `trimtab explain` knows, in `catalog.json`.

The file is generated from the declarations, so it needs what Trimtab itself needs; an sdist has the file and not the
sources of the documentation, and keeps what it has.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CatalogHook(BuildHookInterface):  # type: ignore[type-arg]
    """Writes the file into the sources, where the wheel takes it from."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file, unless these are the sources of an sdist.

        Raises FileNotFoundError if neither the file nor what it is generated from is there.
        """
        root = Path(self.root)
        if (root / "docs" / "pages" / "explain.py").exists():
            subprocess.run([sys.executable, "-m", "docs.pages.explain"], cwd=root, check=True)
        elif not (catalog := root / "trimtab" / "cli" / "catalog.json").exists():
            raise FileNotFoundError(f"{catalog} is missing, and docs/, which it is generated from, is not here")
