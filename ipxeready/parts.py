"""The parts that the verbose health page lists: files, dnsmasq, nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings

from agents import seen
from agents.selectors import agents
from ipxeready import file_troubles, index
from ipxeready.web.health import health_section
from ipxeready.web.troubles import troubles
from workers import dnsmasq_process


def files() -> list[dict[str, Any]]:
    """Each file, whether it can be read, and the problems in it."""
    problems: dict[str, list[str]] = {}
    for problem in index.problems():
        where = f"line {problem.line}: " if problem.line else ""
        problems.setdefault(problem.source, []).append(where + problem.message)
    return [
        {
            "name": file.name,
            "path": file.path,
            "ok": not file.error,
            "error": file.error or None,
            "line": file.error_line or None,
            "problems": problems.get(file.name, []),
        }
        for file in index.files()
    ]


def dnsmasq() -> dict[str, Any]:
    """How it is reloaded, and whether the process of the pid file is a dnsmasq."""
    kind, value = settings.IPXE.dnsmasq_reload
    answer: dict[str, Any] = {"reload": kind, "value": value or None}
    if kind == "pidfile":
        try:
            with dnsmasq_process.find(Path(value)) as process:
                answer |= {"running": True, "pid": process.pid}
        except dnsmasq_process.NotRunning as error:
            answer |= {"running": False, "error": str(error)}
    return answer


def nodes() -> list[dict[str, Any]]:
    """The registered nodes as they were last seen; `/agents?live=true` asks them."""
    return [
        {
            "id": node.id,
            "base_url": node.base_url,
            "enabled": node.enabled,
            "backend": seen.backend_of(node),
        }
        for node in agents()
    ]


def register() -> None:
    """Add the sections to /healthz?verbose=1, and what is wrong with files to what is wrong."""
    file_troubles.register()
    health_section("troubles", lambda: [trouble.told() for trouble in troubles()])
    for name, section in (("files", files), ("dnsmasq", dnsmasq), ("nodes", nodes)):
        health_section(name, section)
