"""The first steps of the README, typed as they stand there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipxeready.conf import REPOSITORY
from tests.local_run import Local

pytestmark = pytest.mark.tgtd


def _typed(here: Local) -> str:
    """The shell blocks below "First steps", for our ports and paths; nobody is there to be asked."""
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    steps = re.split(r"^## ", text, flags=re.MULTILINE)
    (first,) = [part for part in steps if part.startswith("First steps")]
    script = "\n".join(re.findall(r"```sh\n(.*?)```", first, re.DOTALL))
    for there, ours in (
        ("127.0.0.1:4839", f"127.0.0.1:{here.ports['cp']}"),
        (".venv/bin/python manage.py", f"{sys.executable} {REPOSITORY}/manage.py"),
        ("delete_workers", "delete_workers --yes"),
    ):
        assert there in script
        script = script.replace(there, ours)
    return script


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Local]:
    """A running product with a master and an ISO in its image directory."""
    one = Local(tmp_path / "root")
    images = tmp_path / "root" / "images"
    images.mkdir(parents=True)
    for name in ("ubuntu_tpl_24.04.img", "windows.iso"):
        with (images / name).open("wb") as file:
            file.truncate(16 << 20)
    one.start()
    yield one
    one.end()


def test_the_first_steps_work_as_they_are_written(here: Local) -> None:
    done = subprocess.run(
        ["bash", "-e", "-c", _typed(here)],
        cwd=here.root,
        env=here.environ,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    said = f"{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, said
    # A refusal of the API is no failure for curl.
    assert '"detail"' not in said, said
    assert '"failed":[]' in said, said
    assert "set menu-default ubuntu" in said, said
    assert "2 registered, 0 unchanged" in said, said
    assert "2 created, 0 skipped" in said, said
    assert '"state":"installing"' in said, said
    assert "2 deleted" in said, said
    # All that was made is gone again.
    assert here.call("GET", "/workers") == []
    left = {path.name for path in (here.root / "images").glob("*.i*")}
    assert left == {"ubuntu_tpl_24.04.img", "windows.iso"}
