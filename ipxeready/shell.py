"""What all commands of the shell share: `--json`, exit codes, refusals in one line, a progress bar on terminals."""

from __future__ import annotations

import getpass
import json
import os
import sys
import time
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Iterable, Sequence
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, OutputWrapper
from django.db import DatabaseError

from ipxeready.actors import ADMINISTRATOR, Actor
from ipxeready.conf import CONTROL
from ipxeready.errors import ApplicationError, NodeRefused
from ipxeready.storage.jobs import BYTES, ITEMS
from ipxeready.storage.paths import Layout
from ipxeready.storage.sizes import format_size

#: Exit codes, for scripts; 0 is "all of it was done".
REFUSED, USAGE, PARTLY, INTERRUPTED = 1, 2, 3, 130
_WIDTH = 30
_PAUSE = 0.1
#: Seconds between two plain lines where there is no terminal: a log shows that something goes on.
_LINE_PAUSE = 30.0


class Refused(CommandError):
    """Nothing was changed."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args, returncode=REFUSED)


class Usage(CommandError):
    """The command was called wrongly."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args, returncode=USAGE)


class Partly(CommandError):
    """Some of it was done, some was not."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args, returncode=PARTLY)


class Interrupted(CommandError):
    """Ctrl-C: what was done until then stays."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args, returncode=INTERRUPTED)


class ShellCommand(BaseCommand):
    """A command that calls services; subclasses have `arguments` and `run`.

    People read standard output as text, programs with `--json` as one JSON value; all else goes to standard error.
    """

    requires_system_checks = []
    #: Whether the index must be brought up to date first.
    needs_index = True
    as_json = False
    quiet = False

    def arguments(self, parser: ArgumentParser) -> None:
        """The arguments of this command."""

    def run(self, options: dict[str, Any]) -> None:
        """Do it."""
        raise NotImplementedError

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Those of the command, and `--json`."""
        self.arguments(parser)
        parser.add_argument(
            "--json",
            action="store_true",
            help="write the result as JSON to standard output, and nothing else there",
        )

    def run_from_argv(self, argv: list[str]) -> None:
        """As Django does; a reader of our output that has gone away is no error of ours."""
        try:
            super().run_from_argv(argv)
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(REFUSED) from None

    def handle(self, *args: Any, **options: Any) -> None:
        """Run; every refusal is one line and an exit code."""
        self.as_json = options.get("json", False)
        self.quiet = options.get("verbosity", 1) == 0
        if settings.IPXE.mode != CONTROL:
            raise Usage(
                f"IPXE_MODE={settings.IPXE.mode}: must be control for this command"
            )
        try:
            if self.needs_index:
                self._ensure_index()
            self.run(options)
        except ApplicationError as error:
            self.emit({"error": failure(error)})
            raise Refused(words(error)) from error
        except BrokenPipeError:
            raise
        except (OSError, DatabaseError) as error:
            what = getattr(error, "filename", None) or type(error).__name__
            reason = getattr(error, "strerror", None) or error
            raise Refused(one_line(f"{what}: {reason}")) from error
        except KeyboardInterrupt:
            raise Interrupted(
                "stopped; what was done until now stays, the same command goes on from there"
            ) from None

    @staticmethod
    def _ensure_index() -> None:
        layout: Layout = settings.IPXE_LAYOUT
        if not layout.state.is_dir():
            raise Refused(
                f"IPXE_ROOT={layout.root}: there is no folder {layout.state}; correct IPXE_ROOT, "
                "or start the service once: it makes the files"
            )
        from ipxeready import index

        index.ensure_fresh(wait=True)

    # --- output -------------------------------------------------------------
    def emit(self, value: Any) -> None:
        """The result for programs; nothing without `--json`."""
        if self.as_json:
            text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
            # An undecodable byte of a file name must not end us.
            self.stdout.write(text.encode("utf-8", "backslashreplace").decode())

    def say(self, text: str) -> None:
        """A line for people; nothing with `--json`."""
        if not self.as_json:
            self.stdout.write(one_line(text))

    def warn(self, text: str) -> None:
        """A line on standard error."""
        self.stderr.write(one_line(text))

    def table(self, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Rows for people under their heads."""
        if self.as_json:
            return
        cells = [[("-" if c in (None, "") else str(c)) for c in row] for row in rows]
        widths = [
            max([len(head), *(len(row[at]) for row in cells)])
            for at, head in enumerate(heads)
        ]
        for row in ([head.upper() for head in heads], *cells):
            line = "  ".join(
                cell.ljust(width) for cell, width in zip(row, widths, strict=True)
            )
            self.stdout.write(line.rstrip())

    def progress(self, what: str) -> Progress:
        """A bar on a terminal; elsewhere a plain line now and then, once it takes long."""
        return Progress(self.stderr, what, quiet=self.quiet)

    def finish(self, *, done: int, failed: int, what: str) -> None:
        """End with the exit code that fits: all done, some of it, nothing."""
        if not failed:
            return
        if done:
            raise Partly(f"{failed} of {done + failed} {what} failed")
        raise Refused(f"all {failed} {what} failed; nothing was changed")

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask on a terminal; elsewhere `--yes` is needed."""
        if yes:
            return
        if not (sys.stdin.isatty() and self.stderr.isatty()):
            raise Usage("standard input is no terminal to ask on: give --yes")
        self.stderr.write(f"{question} [y/N] ", _plain, ending="")
        self.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise Refused("not confirmed; nothing was changed")


class Progress:
    """How far something is: `with bar: bar(done, total)`; `total` None while nobody knows it."""

    def __init__(self, stream: OutputWrapper, what: str, *, quiet: bool) -> None:
        self._stream = stream
        self._what = what
        self._quiet = quiet
        self._terminal = stream.isatty()
        self._last = 0.0 if self._terminal else time.monotonic()
        self._drawn = 0

    def __call__(self, done: int, total: int | None, unit: str = ITEMS) -> None:
        """Draw, not more than some times a second."""
        now = time.monotonic()
        if self._quiet or not self._due(done, total, now):
            return
        self._last = now
        far = _far(done, total, unit)
        if not self._terminal:
            self._stream.write(f"{self._what} {far}")
            self._stream.flush()
            return
        line = f"{self._what} {_bar(done, total)}{far}"
        self._put("\r" + line.ljust(self._drawn))
        self._drawn = len(line)

    def _due(self, done: int, total: int | None, now: float) -> bool:
        if not self._terminal:
            return now - self._last >= _LINE_PAUSE
        ended = total is not None and done >= total
        return ended or now - self._last >= _PAUSE

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave an empty line for what is said next."""
        if self._drawn:
            self._put("\r" + " " * self._drawn + "\r")

    def _put(self, text: str) -> None:
        self._stream.write(text, _plain, ending="")
        self._stream.flush()


def _bar(done: int, total: int | None) -> str:
    if total is None:
        return ""
    full = min(_WIDTH * done // total, _WIDTH) if total else _WIDTH
    return f"[{'#' * full}{'.' * (_WIDTH - full)}] "


def _far(done: int, total: int | None, unit: str) -> str:
    word = format_size if unit == BYTES else str
    return word(done) if total is None else f"{word(done)}/{word(total)}"


def _plain(text: str) -> str:
    return text


def add_json(parsers: Iterable[ArgumentParser]) -> None:
    """`--json` behind each sub-command too; without it there, the one before it counts."""
    for each in parsers:
        each.add_argument(
            "--json", action="store_true", default=SUPPRESS, help="result as JSON"
        )


def shell_actor() -> Actor:
    """Whoever may run a command here may do everything."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        name = str(os.getuid())
    return Actor(f"shell:{name}", ADMINISTRATOR)


def one_line(text: str) -> str:
    """The text without line breaks."""
    return " ".join(text.splitlines())


def words(error: ApplicationError) -> str:
    """A refusal in one line that names its field."""
    text = error.message
    if error.field and not text.startswith(f"{error.field}:"):
        text = f"{error.field}: {text}"
    return one_line(text)


def failure(error: ApplicationError) -> dict[str, Any]:
    """A refusal for programs."""
    shown: dict[str, Any] = {"message": words(error), "code": error.code}
    if error.field:
        shown["field"] = error.field
    if isinstance(error, NodeRefused):
        shown["agent"] = error.agent
    return shown
