"""All files of the control plane judged together, from what lies on disk alone."""

from __future__ import annotations

from agents.models import Agent
from ipxeready.index.examine import Examined, Finding, examine
from ipxeready.storage.paths import Layout
from workers.compare import (
    Difference,
    State,
    contradictions,
    differences,
    hosts_lines,
)
from workers.models import Binding, Cd, Disk, Worker


def check_state(layout: Layout) -> list[Finding]:
    """Broken files, records that do not validate, contradictions and differences, by file and line."""
    found = examine(layout)
    paths = {
        "workers": str(layout.workers_yml),
        "hosts": str(layout.dhcp_hosts),
    }
    told: list[Difference] = []
    if "hosts" in found.texts:
        told += hosts_lines(found.texts["hosts"])
    state = _state(found)
    told += contradictions(state)
    # A file that cannot be read differs from the other in everything.
    if {"workers", "hosts"} <= found.texts.keys():
        told += differences(state)
    lines = _lines(found)
    findings = found.findings + [
        Finding(
            paths[each.source],
            each.code,
            each.message,
            each.line or lines.get((each.source, each.record), 0),
            record=each.record,
            problem=each.problem,
        )
        for each in told
    ]
    return sorted(findings, key=lambda each: (each.path, each.line, each.message))


def _state(found: Examined) -> State:
    rows = [row for part in found.rows.values() for row in part]
    agents = {row.id for row in rows if isinstance(row, Agent)}
    broken = {each.record for each in found.findings if each.code == "record.broken"}
    return State(
        workers=[row for row in rows if isinstance(row, Worker)],
        disks=[row for row in rows if isinstance(row, Disk)],
        cds=[row for row in rows if isinstance(row, Cd)],
        bindings=[row for row in rows if isinstance(row, Binding)],
        # A node whose record does not validate is there all the same.
        agents=agents | broken if "agents" in found.texts else None,
    )


def _lines(found: Examined) -> dict[tuple[str, str], int]:
    """The line of each record of the ledger, and of each hostname of the hosts file."""
    lines: dict[tuple[str, str], int] = {}
    if "workers" in found.texts:
        for key, entry in found.texts["workers"].entries().items():
            lines["workers", key] = entry.line
    if "hosts" in found.texts:
        for line in found.texts["hosts"].text.lines:
            if line.hostname:
                lines.setdefault(("hosts", line.hostname), line.number)
    return lines
