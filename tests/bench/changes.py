"""What a change costs: a machine that nobody knew, and an edit by hand until a machine sees it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from ipxeready.storage.paths import Layout
from tests.bench.data import boot_path, mac, name
from tests.bench.processes import Server

#: An edit that is not seen by then is not seen.
_PATIENCE = 20.0


def registrations(server: Server, workers: int, times: int) -> list[float]:
    """Seconds of each: unknown MAC asked, name in the answer, ledger and hosts file on the disk."""
    found = []
    for number in range(workers + 1, workers + 1 + times):
        begin = time.perf_counter()
        answer = server.ask("GET", boot_path(number))
        found.append(time.perf_counter() - begin)
        wanted = f"set hostname {name(number)}\n".encode()
        if wanted not in answer:
            raise RuntimeError(f"{mac(number)} became no {name(number)}: {answer!r}")
    return found


def ledger_edits(server: Server, layout: Layout, times: int) -> list[float]:
    """Seconds from saving state/workers.yml to the first answer that shows the edit."""

    def edit(at: int) -> tuple[bytes, str, bytes]:
        whole = layout.workers_yml.read_bytes()
        head = f"\n  {name(at)}:\n".encode()
        before, _, after = whole.partition(head)
        wanted = f"set menu-timeout {7000 + at}\n"
        boot = f"    boot: {{menu_timeout: {7000 + at}}}\n"
        return before + head + boot.encode() + after, boot_path(at), wanted.encode()

    return [
        _seen(server, layout.workers_yml, lambda at=at: edit(at))
        for at in range(2, 2 + times)
    ]


def hosts_edits(server: Server, layout: Layout, times: int) -> list[float]:
    """The same for dnsmasq/dhcp-hosts.conf: a machine gets another card."""

    def edit(at: int) -> tuple[bytes, str, bytes]:
        whole = layout.dhcp_hosts.read_bytes()
        new = 0xAA0000 + at
        changed = whole.replace(
            f"{mac(at)},{name(at)}\n".encode(), f"{mac(new)},{name(at)}\n".encode()
        )
        return changed, boot_path(new), f"set hostname {name(at)}\n".encode()

    return [
        _seen(server, layout.dhcp_hosts, lambda at=at: edit(at))
        for at in range(2, 2 + times)
    ]


def _seen(
    server: Server, file: Path, edit: Callable[[], tuple[bytes, str, bytes]]
) -> float:
    content, path, wanted = edit()
    # As an editor saves: a new file that takes the old one's place.
    draft = file.with_name(f"{file.name}.edited")
    draft.write_bytes(content)
    draft.chmod(file.stat().st_mode & 0o777)
    begin = time.perf_counter()
    os.replace(draft, file)
    while wanted not in (answer := server.ask("GET", path)):
        if time.perf_counter() - begin > _PATIENCE:
            raise RuntimeError(f"the edit of {file.name} was not seen: {answer!r}")
    return time.perf_counter() - begin
