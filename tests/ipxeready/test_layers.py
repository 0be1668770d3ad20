"""The arrows between the packages point one way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ipxeready.conf import REPOSITORY


def test_import_linter_finds_every_layer_kept() -> None:
    tool = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [tool, "--no-cache"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
