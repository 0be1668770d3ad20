"""What a storage node is asked about its own jobs."""

from __future__ import annotations

import re
from typing import Any

from agents.calls import Calls
from agents.protocol import paths
from ipxeready.errors import ApplicationError, NodeRefused
from ipxeready.said import said
from ipxeready.storage.jobs import STATES

#: What a job's id may look like: it becomes part of an address.
_JOB_ID = re.compile(r"[0-9a-zA-Z-]{1,64}")


class JobClient(Calls):
    """Calls one storage node about its jobs."""

    def jobs(
        self, *, state: str | None = None, limit: int | None = None
    ) -> list[dict[str, Any]]:
        """Its jobs, newest first."""
        params = {"state": state, "limit": None if limit is None else str(limit)}
        given = {name: value for name, value in params.items() if value is not None}
        answer = self._call("GET", paths.JOBS, params=given)
        found = answer.get("jobs") if isinstance(answer, dict) else None
        if not isinstance(found, list):
            raise self._nonsense(said("its /jobs is no list of jobs"))
        return [self._job(entry) for entry in found]

    def job(self, job_id: str) -> dict[str, Any]:
        """One of its jobs; the node refuses (404) when it has none of that id."""
        return self._job(self._call("GET", self._job_path(job_id)))

    def job_cancel(self, job_id: str) -> dict[str, Any]:
        """Ask for the end of a job, which comes a moment later; the node refuses (409) when it has ended."""
        return self._job(self._call("DELETE", self._job_path(job_id)))

    def job_error(self, job: dict[str, Any]) -> ApplicationError:
        """The refusal that a failed job stands for."""
        error = job.get("error")
        told = error if isinstance(error, dict) else {}
        status = told.get("status")
        if not isinstance(status, int) or not 400 <= status < 600:
            status = 500
        return self._refusal(status, {"detail": told.get("detail")})

    def _job(self, answer: Any) -> dict[str, Any]:
        if (
            not isinstance(answer, dict)
            or not isinstance(answer.get("id"), str)
            or not _JOB_ID.fullmatch(answer["id"])
            or answer.get("state") not in STATES
        ):
            raise self._nonsense(said("its answer is no job"))
        job = {"done": 0, "total": None, "unit": "", **answer}
        if not isinstance(job["done"], int) or not isinstance(job["total"], int | None):
            raise self._nonsense(said("its job has no numbers for its progress"))
        return job

    def _job_path(self, job_id: str) -> str:
        if not _JOB_ID.fullmatch(job_id):
            raise NodeRefused(
                agent=self.agent.id,
                status=404,
                error=said("there is no job {job}.", job=repr(job_id)),
            )
        return f"{paths.JOBS}/{job_id}"
