"""The product as the guest runs it: the repository as it is now, and the Python packages it needs, compiled, each in an image.

Read from an image, imports take a tenth of what they take over a shared folder: the guest's processor is emulated.
"""

from __future__ import annotations

import compileall
import shutil
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

from tests.lab.lab_cache import kept
from tests.lab.lab_guest_image import ext4

REPOSITORY = Path(__file__).resolve().parents[2]
#: Where the guest has them.
PLACE = Path("/opt/ipxeready")
PYTHON = PLACE / ".venv/bin/python"
_PACKAGES = Path("lib/python3.11/site-packages")
#: Of the repository: what a checkout does not bring, and what no program in the guest reads.
_LEFT_OUT = (
    *(".*", "cache", "artifacts", "node_modules"),
    *("state", "images", "public", "staticfiles", "docs"),
)


def packages_image() -> Path:
    """The environment with what the product needs (not what its tests need), in the versions of the one we run in."""
    needed = sorted(_needed(), key=lambda found: found.name)
    recipe = [Path(__file__).read_bytes()]
    recipe += [f"{found.name} {found.version}".encode() for found in needed]

    def make(work: Path) -> None:
        _copy_packages(needed, work / "tree")
        ext4(work / "tree", work / "image")
        shutil.rmtree(work / "tree")

    return kept("packages", recipe, make) / "image"


def _needed() -> Iterator[Distribution]:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    wanted = [Requirement(line) for line in project["dependencies"]]
    seen: set[str] = set()
    while wanted:
        requirement = wanted.pop()
        found = distribution(requirement.name)
        if found.name in seen:
            continue
        seen.add(found.name)
        yield found
        for line in found.requires or ():
            further = Requirement(line)
            if not further.marker or further.marker.evaluate({"extra": ""}):
                wanted.append(further)


def _copy_packages(needed: list[Distribution], tree: Path) -> None:
    (tree / "bin").mkdir(parents=True)
    # Debian's own interpreter, which is of the same version; it finds the packages by the file beside it.
    (tree / "bin/python").symlink_to("/usr/bin/python3")
    (tree / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11\n")
    for found in needed:
        for file in found.files or ():
            # Scripts lie outside, as ../../../bin/name.
            if ".." not in file.parts and "__pycache__" not in file.parts:
                target = tree / _PACKAGES / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(found.locate_file(file), target)
    _compile(tree / _PACKAGES, PYTHON.parents[1] / _PACKAGES)


def repository_image(image: Path, work: Path) -> None:
    """The repository's files as they are now."""
    tree = work / "repository"
    shutil.copytree(REPOSITORY, tree, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    (tree / ".venv").mkdir()
    _compile(tree, PLACE)
    ext4(tree, image)
    shutil.rmtree(tree)


def _compile(tree: Path, place: Path) -> None:
    """What is compiled already and is still right is left as it is."""
    compileall.compile_dir(tree, quiet=2, stripdir=str(tree), prependdir=str(place))
