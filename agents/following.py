"""Follows a job of a storage node to its end: progress goes up, the wish to stop goes down, a node that restarts is waited for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agents.job_client import JobClient
from ipxeready.errors import ApplicationError, NodeRefused, Unavailable
from ipxeready.said import said
from ipxeready.storage.jobs import CANCELLED, DONE, FAILED, Cancelled

#: done, total (None while unknown), unit.
Progress = Callable[[int, int | None, str], None]

#: Seconds between two looks at a job: short at first, as most are over soon.
FIRST, LAST = 0.5, 2.0
#: Seconds without an answer after which a node is given up. An agent that is told to end finishes short copies first,
#: and answers nobody meanwhile.
PATIENCE = 300.0
#: The same for a caller that wants to stop anyway.
STOPPING = 30.0


@dataclass(frozen=True)
class Callbacks:
    """What the caller of long work is told, and may ask."""

    progress: Progress | None = None
    """Called often; what it raises as Cancelled is the wish to stop."""
    stop: Callable[[], bool] | None = None
    """Asked several times a second: true is the wish to stop."""
    on_job: Callable[[str], None] | None = None
    """Told the job's id on the node, once there is one."""


#: Nobody is told, and nobody wishes to stop.
UNWATCHED = Callbacks()


def follow(
    client: JobClient,
    job: dict[str, Any],
    callbacks: Callbacks,
    found: Callable[[], Any | None] | None = None,
) -> Any:
    """The result of a job of `client`'s node when it is done.

    Raises NodeRefused when it failed or is gone without a result (nothing is left then), Cancelled when it
    was cancelled, through `callbacks` or by somebody else (`extra["sent"]` is False: nothing is left), and Unavailable
    with `extra["sent"]` True when the node does not answer for long: what became of the job is unknown.
    `found` is asked when the node no longer knows the job: the work's result if it is there all the same, None
    if it surely is not.
    """
    return _Following(client, job, callbacks, found).result()


class _Following:
    def __init__(
        self,
        client: JobClient,
        job: dict[str, Any],
        callbacks: Callbacks,
        found: Callable[[], Any | None] | None,
    ) -> None:
        self._client = client
        self._job = job
        self._callbacks = callbacks
        self._found = found
        self._stopping = self._told = False
        self._silent_since: float | None = None

    def result(self) -> Any:
        pause = FIRST
        while True:
            self._tell()
            state = self._job["state"]
            if state == DONE:
                return self._job.get("result")
            if state == FAILED:
                raise self._client.job_error(self._job)
            if state == CANCELLED:
                raise self._cancelled()
            self._pause(pause)
            pause = min(pause * 1.5, LAST)
            try:
                self._look()
            except NodeRefused as error:
                if error.status != 404:
                    raise
                return self._gone()

    def _tell(self) -> None:
        if self._callbacks.progress is None:
            return
        job = self._job
        try:
            self._callbacks.progress(job["done"], job["total"], job["unit"])
        except Cancelled:
            self._stopping = True

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if not self._stopping and self._callbacks.stop is not None:
                self._stopping = self._callbacks.stop()
            if self._stopping and not self._told:
                return
            time.sleep(min(left, FIRST / 2))

    def _look(self) -> None:
        """Have the job as it is now; a node that does not answer for a while keeps us waiting."""
        try:
            if self._stopping and not self._told:
                self._ask_for_the_end()
            self._job = self._client.job(self._job["id"])
        except ApplicationError as error:
            if isinstance(error, NodeRefused) and error.status < 500:
                raise
            self._wait_for_it(error)
        else:
            self._silent_since = None

    def _ask_for_the_end(self) -> None:
        try:
            self._client.job_cancel(self._job["id"])
        except NodeRefused as error:
            if error.status != 409:
                raise
            # It has ended already; the look after this says how.
        self._told = True

    def _wait_for_it(self, error: ApplicationError) -> None:
        moment = time.monotonic()
        if self._silent_since is None:
            self._silent_since = moment
        limit = STOPPING if self._stopping else PATIENCE
        if moment - self._silent_since < limit:
            time.sleep(FIRST / 2)
            return
        raise self._unknown(
            said("it is not answering any more ({error})", error=error.message)
        )

    def _gone(self) -> Any:
        """The node has no such job: its state folder was emptied, or the job ended long ago."""
        if self._found is None:
            raise self._unknown(said("it no longer knows the job"))
        try:
            result = self._found()
        except ApplicationError as error:
            words = error.error if isinstance(error, NodeRefused) else error.message
            raise self._unknown(
                said("it no longer knows the job: {words}", words=words)
            ) from error
        if result is None:
            raise NodeRefused(
                agent=self._client.agent.id,
                status=Unavailable.status,
                error=said(
                    "the agent was restarted and no longer knows the job; nothing was made. Send "
                    "it again."
                ),
            )
        return result

    def _unknown(self, words: str) -> Unavailable:
        agent = self._client.agent
        return Unavailable(
            said(
                "node {agent} at {base_url}: {words}; what became of job {job} is not known",
                agent=agent.id,
                base_url=agent.base_url,
                words=words,
                job=self._job["id"],
            ),
            code="agent.job_lost",
            extra={"agent": agent.id, "sent": True},
        )

    def _cancelled(self) -> Cancelled:
        agent = self._client.agent.id
        return Cancelled(
            said(
                "node {agent}: job {job} was cancelled; nothing is left of it.",
                agent=agent,
                job=self._job["id"],
            ),
            extra={"agent": agent, "sent": False},
        )
