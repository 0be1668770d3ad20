"""`manage.py translations`: bring the Chinese catalogue in line with the sources, and compile it.

For developers; it needs Debian's gettext. The compiled catalogue is committed, so that running needs none.
"""

from __future__ import annotations

import subprocess
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation.template import templatize

from ipxeready.conf import REPOSITORY

FOLDERS: Final = ("ipxeready", "agents", "audit", "bootvars", "workers")
PO: Final = REPOSITORY / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"
#: The functions that mark texts, and which of their arguments are texts.
KEYWORDS: Final = (
    "_",
    "_t",
    "said",
    "gettext",
    "gettext_lazy",
    "gettext_noop",
    "ngettext:1,2",
    "ngettext_lazy:1,2",
    "pgettext:1c,2",
    "pgettext_lazy:1c,2",
    "npgettext:1c,2,3",
    "npgettext_lazy:1c,2,3",
)
#: What would differ from run to run without saying anything.
DATES: Final = ('"POT-Creation-Date:', '"PO-Revision-Date:')


class Command(BaseCommand):
    """Extract, merge, compile."""

    help = "Bring the Chinese catalogue in line with the sources, and compile it."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Nothing to choose."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Texts that are new come without a translation; they are counted."""
        with tempfile.TemporaryDirectory() as folder:
            try:
                merged = merge(PO, extract(Path(folder)))
                PO.write_text(merged, encoding="utf-8")
                compile_catalogue(PO, PO.with_suffix(".mo"))
            except FileNotFoundError as error:
                raise CommandError(
                    f"{error.filename} is missing: apt-get install gettext"
                ) from error
            except subprocess.CalledProcessError as error:
                raise CommandError(error.stderr) from error
            left = run("msgattrib", "--untranslated", str(PO)).count("\nmsgid ") - 1
        if left > 0:
            self.stdout.write(f"{left} texts have no translation yet: see {PO}")


def run(*command: str) -> str:
    """Output of a gettext program."""
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, encoding="utf-8"
    )
    return done.stdout


def extract(folder: Path) -> Path:
    """All marked texts of code and templates, as a template catalogue in `folder`."""
    sources = [
        path for name in FOLDERS for path in sorted((REPOSITORY / name).rglob("*.py"))
    ]
    templates = REPOSITORY / "templates"
    for path in sorted(templates.rglob("*.html")):
        name = "_".join(path.relative_to(templates).parts)
        copy = folder / f"{name}.py"
        text = templatize(path.read_text(encoding="utf-8"), origin=str(path))
        copy.write_text(text, encoding="utf-8")
        sources.append(copy)
    pot = folder / "django.pot"
    run(
        "xgettext",
        "--language=Python",
        "--from-code=UTF-8",
        "--no-location",
        "--no-wrap",
        "--sort-output",
        "--keyword",
        *(f"--keyword={word}" for word in KEYWORDS),
        f"--output={pot}",
        *map(str, sources),
    )
    return pot


def merge(po: Path, pot: Path) -> str:
    """The catalogue with the texts of the template: what is gone goes, what is new is empty."""
    merged = pot.with_suffix(".merged")
    options = ("--quiet", "--no-fuzzy-matching", "--no-wrap", "--sort-output")
    run("msgmerge", *options, f"--output-file={merged}", str(po), str(pot))
    text = run("msgattrib", "--no-obsolete", "--no-wrap", "--sort-output", str(merged))
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(DATES))


def compile_catalogue(po: Path, mo: Path) -> None:
    """Check the catalogue and write what programs read."""
    run("msgfmt", "--check-format", f"--output-file={mo}", str(po))
