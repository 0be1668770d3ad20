"""Commands as a shell sees them: exit code, standard output, standard error."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from unittest import mock

import pytest
from django.core.management import CommandError, call_command

from ipxeready.conf import REPOSITORY


@dataclass
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as the one JSON value that it must be."""
        return json.loads(self.out)


def run(*words: str, stdin: str = "") -> Ended:
    """A command in this process, on the root of the test."""
    out, err = io.StringIO(), io.StringIO()
    source = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    code = 0
    with mock.patch.object(sys, "stdin", source):
        try:
            call_command(*words, stdout=out, stderr=err)
        except CommandError as error:
            code = error.returncode
            err.write(f"{type(error).__name__}: {error}\n")
    return Ended(code, out.getvalue(), err.getvalue())


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def asked(
    monkeypatch: pytest.MonkeyPatch, name: str, answer: str, *words: str
) -> tuple[int, str]:
    """A command on a terminal where `answer` is typed: exit code, and what the terminal shows."""
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    err, code = Terminal(), 0
    try:
        call_command(name, *words, stdout=io.StringIO(), stderr=err)
    except CommandError as error:
        code = error.returncode
        err.write(str(error))
    return code, err.getvalue()


def manage(environ: Mapping[str, str], *words: str, stdin: str = "") -> Ended:
    """A command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=REPOSITORY,
        env=dict(environ),
        input=stdin.encode(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())
