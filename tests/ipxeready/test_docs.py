"""What the documents say is so: variables, pictures, links, commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ipxeready import conf
from ipxeready.conf import REPOSITORY

DOCUMENTS = sorted(
    path for folder in (REPOSITORY, REPOSITORY / "docs") for path in folder.glob("*.md")
)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


def test_every_variable_is_in_the_table_with_its_default() -> None:
    text = (REPOSITORY / "docs" / "configuration.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(IPXE_\w+)` \|.*\| (.+) \|$", text, re.MULTILINE)
    documented = {name: default.strip("`") for name, default in rows}
    assert documented == {
        name: default or "empty" for name, default in conf.VARIABLES.items()
    }


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_no_document_names_a_variable_that_is_not_there(path: Path) -> None:
    known = {
        *conf.VARIABLES,
        *(f"{name}_FILE" for name in ("IPXE_CP_TOKEN", "IPXE_AGENT_TOKEN")),
    }
    named = set(re.findall(r"\bIPXE_[A-Z_]*[A-Z]\b", path.read_text(encoding="utf-8")))
    assert named <= known


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_and_pictures_lead_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    headings = {_anchor(heading) for heading in HEADING.findall(text)}
    for target in LINK.findall(text):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        if file:
            assert (path.parent / file).exists(), target
        elif anchor:
            assert anchor in headings, target


def test_every_picture_is_shown() -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    for picture in (REPOSITORY / "docs" / "screenshots").glob("*.png"):
        assert f"docs/screenshots/{picture.name}" in text, picture.name
        assert picture.stat().st_size <= 120_000, picture.name


def test_every_make_target_that_documents_name_is_there() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z0-9-]+):", makefile, re.MULTILINE))
    for path in DOCUMENTS:
        named = set(re.findall(r"`make ([a-z0-9-]+)", path.read_text(encoding="utf-8")))
        assert named <= targets, path.name


def _anchor(heading: str) -> str:
    words = re.sub(r"[^\w\s-]", "", heading.lower())
    return words.strip().replace(" ", "-")
