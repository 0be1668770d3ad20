"""An answer as an iPXE script or as JSON. The script has only `#`, `set` and `echo` lines, ASCII, from whitelisted values."""

from __future__ import annotations

import re

from bootvars.services import Answer

_VALUE = re.compile(r"[A-Za-z0-9\[:][A-Za-z0-9._:/\[\]-]{0,511}")
#: In a message: no `;`, `&`, `|`, `#`, `$`, braces, quotes or control characters, which iPXE would act on.
_UNSAFE = re.compile(r"[^A-Za-z0-9 ._:/,()=+-]+")
_LONGEST = 300


def message(text: str) -> str:
    """The text as one harmless line of words."""
    words = _UNSAFE.sub(" ", text).split()
    return " ".join(word.lstrip("-") or "." for word in words)[:_LONGEST]


def script(answer: Answer) -> str:
    """The iPXE script; its first bytes are `#!ipxe` whatever the answer is."""
    if answer.refused is not None:
        lines = [
            f"echo {message(answer.refused)}",
            "set menu-default reboot",
            "set menu-timeout 5000",
        ]
    elif not answer.values:
        lines = ["# no per-worker boot vars found"]
    else:
        lines = [f"# boot vars for {answer.worker}"]
        for name, value in answer.values.items():
            text = str(value)
            if not _VALUE.fullmatch(text):
                return script(
                    Answer(
                        refused=f"the value of {name} has characters that iPXE would act on"
                    )
                )
            lines.append(f"set {name} {text}")
        lines += _login(answer)
    return "\n".join(["#!ipxe", *lines, ""])


def _login(answer: Answer) -> list[str]:
    """With these settings iPXE offers CHAP and none, so that targets without it still open."""
    if answer.credentials is not None:
        return [
            f"set username {answer.credentials.username}",
            f"set password {answer.credentials.secret}",
        ]
    if answer.withheld is not None:
        return [
            f"echo {message(f'No login secret for this machine: {answer.withheld}')}"
        ]
    return []


def as_json(answer: Answer) -> dict[str, str | int]:
    """The same for programs."""
    if answer.refused is not None:
        return {"refused": answer.refused}
    return {
        name.replace("-", "_"): value
        for name, value in answer.values.items()
        if name != "hostname"
    }
