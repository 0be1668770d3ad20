"""Runs the behaviour cases over LIO, in a guest: one JSON object a line for each, `{case, ok, error, seconds}`.

`python -m tests.agents.node.behaviour.guest_driver [NAME...]`; all of them without names.
"""

from __future__ import annotations

import itertools
import json
import logging
import sys
import time
import traceback
from pathlib import Path

from tests.agents.node.behaviour.cases import Case, cases_for
from tests.agents.node.behaviour.lio_rig import LioRig

DATA = Path("/data")
_numbers = itertools.count(1)


def run(case: Case) -> dict[str, object]:
    """One case on a rig of its own."""
    began = time.monotonic()
    error = ""
    try:
        rig = LioRig(DATA / f"node-{next(_numbers)}")
        try:
            case.run(rig)
        finally:
            rig.stop()
        assert rig.left() == [], rig.left()
    except Exception:  # noqa: BLE001 - reported, and the next case runs
        error = traceback.format_exc()
    seconds = round(time.monotonic() - began, 2)
    return {"case": case.name, "ok": not error, "error": error, "seconds": seconds}


def main() -> None:
    """Run those that are named."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    wanted = sys.argv[1:]
    for case in cases_for("lio"):
        if not wanted or case.name in wanted:
            sys.stdout.write(f"{json.dumps(run(case))}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
