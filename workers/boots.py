"""What many workers boot next: each on its own, one write for a part of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ipxeready.actors import OPERATOR, Actor
from ipxeready.errors import ApplicationError
from ipxeready.index import writing
from ipxeready.jobs.watch import NOBODY, Watch
from workers.batch_items import Changed, left_alone
from workers.services import UNSET, worker_boot_set

#: Workers in one write: others get their turn in between.
_PART = 100


def workers_boot_set(
    *,
    actor: Actor,
    worker_ids: Sequence[str],
    os: Any = UNSET,
    menu_default: Any = UNSET,
    menu_timeout: Any = UNSET,
    progress: Callable[[int, int], None] | None = None,
    watch: Watch = NOBODY,
) -> Changed:
    """`worker_boot_set` for each worker; one that is refused does not hold up the others."""
    actor.require(OPERATOR)
    done = Changed()
    for start in range(0, len(worker_ids), _PART):
        part = worker_ids[start : start + _PART]
        if (left := left_alone(watch)) is not None:
            done.failed += [(worker_id, left) for worker_id in part]
            continue
        with writing(actor=actor, op="worker.boot.set"):
            succeeded: list[str] = []
            for worker_id in part:
                try:
                    worker_boot_set(
                        actor=actor,
                        worker_id=worker_id,
                        os=os,
                        menu_default=menu_default,
                        menu_timeout=menu_timeout,
                    )
                except ApplicationError as error:
                    done.failed.append((worker_id, error))
                else:
                    succeeded.append(worker_id)
        done.succeeded += succeeded
        if progress:
            progress(start + len(part), len(worker_ids))
    return done
