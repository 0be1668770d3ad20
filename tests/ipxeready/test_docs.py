"""What the documents say is so: variables, pictures, links, commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.urls import Resolver404, resolve

from audit.choices import OPERATIONS
from ipxeready import conf
from ipxeready.conf import REPOSITORY
from tests.browser import readme_pages
from tests.browser.pictures import LARGEST
from tests.browser.readme_pages import README
from tests.commands_doc import commands

DOCUMENTS = sorted(
    path for folder in (REPOSITORY, REPOSITORY / "docs") for path in folder.glob("*.md")
)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
#: Of the agent, which has its own addresses, and of what is not there yet.
NOT_OURS = ("/lun", "/capabilities", "/logs", "/images", "/uploads")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


def test_every_variable_is_in_the_table_with_its_default() -> None:
    text = (REPOSITORY / "docs" / "configuration.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(IPXE_\w+)` \|.*\| (.+) \|$", text, re.MULTILINE)
    documented = {name: default.strip("`") for name, default in rows}
    assert len(rows) == len(documented), "a row is there twice"
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


def test_every_page_is_shown_in_every_look() -> None:
    """`make screenshots` takes the pictures and writes the tables."""
    assert README.read_text(encoding="utf-8") == readme_pages.written()
    there = {path.name for path in (REPOSITORY / readme_pages.FOLDER).iterdir()}
    assert there == readme_pages.files()


def test_pictures_are_small() -> None:
    for picture in (REPOSITORY / readme_pages.FOLDER).glob("*.png"):
        assert picture.stat().st_size <= LARGEST, picture.name


def test_make_run_installs_what_it_promises() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    (installed,) = re.findall(r"^APT_RUN := (.*)", makefile, re.MULTILINE)
    # The target daemon, DHCP, the loaders, and the conversion of images.
    assert {"tgt", "dnsmasq-base", "ipxe", "qemu-utils"} <= set(installed.split())


def test_every_make_target_that_documents_name_is_there() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z0-9-]+):", makefile, re.MULTILINE))
    for path in DOCUMENTS:
        named = set(re.findall(r"`make ([a-z0-9-]+)", path.read_text(encoding="utf-8")))
        assert named <= targets, path.name


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_examples_of_commands_can_be_pasted(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        assert not re.search(r"^manage\.py ", block, re.MULTILINE), block


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_address_that_documents_name_is_served(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = re.findall(r"`(?:GET|POST|PUT|DELETE) (/[^`\s]*)", text)
    named += re.findall(r"\$url(/[^\"\s`]*)", text)
    for address in named:
        if any(address.startswith(start) for start in NOT_OURS):
            continue
        asked = re.sub(r"\?.*|\{format\}", "", address)
        asked = re.sub(r"\{\w+\}|<\w+>|\.\.\.", "x", asked)
        try:
            resolve(asked)
        except Resolver404:
            resolve(asked, "agents.node.urls")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_that_documents_name_is_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = set(re.findall(r"(?:manage\.py|^manage) ([a-z_]+)", text, re.MULTILINE))
    assert named <= {*commands(), "check"}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_path_of_the_repository_that_documents_name_is_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for name in re.findall(r"(?<![\w/])(?:deploy|docs|tests)/[\w./*-]+", text):
        assert list(REPOSITORY.glob(name.rstrip("./"))), name


def test_every_document_is_reached_from_the_readme() -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    reached = {target.partition("#")[0] for target in LINK.findall(text)}
    for path in DOCUMENTS:
        name = str(path.relative_to(REPOSITORY))
        assert name in reached or name == "README.md", name


def test_every_operation_that_is_written_down_is_described() -> None:
    text = (REPOSITORY / "docs" / "contract.md").read_text(encoding="utf-8")
    ours = set(re.findall(r"`([a-z]+(?:\.[a-z_]+)+)`", text))
    written = set()
    for folder in ("ipxeready", "audit", "agents", "workers", "bootvars"):
        for path in (REPOSITORY / folder).rglob("*.py"):
            code = path.read_text(encoding="utf-8")
            written |= set(re.findall(r"\bop=\"([a-z_.]+)\"", code))
            written |= set(re.findall(r"log\.add\(\s*\"([a-z_.]+)\"", code))
    assert len(written) > 15
    assert written - ours <= set(OPERATIONS)


def _anchor(heading: str) -> str:
    words = re.sub(r"[^\w\s-]", "", heading.lower())
    return words.strip().replace(" ", "-")
