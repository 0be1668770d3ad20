"""The one exception tree of the product; each edge translates it (form error, HTTP status, exit code, firmware script)."""

from __future__ import annotations

from typing import Any

from ipxeready.said import Said, clipped, said


class ApplicationError(Exception):
    """A refusal with a message for people, a code for programs and an HTTP status for edges that need one.

    The message is English; made by `said()`, a page can say it in its own language.
    """

    status = 400
    default_code = "invalid"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        field: str | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.field = field
        self.extra = extra or {}

    def detail(self) -> Any:
        """What the API shows under "detail": by field where the fault is a field's."""
        return {self.field: [self.message]} if self.field else self.message


class Invalid(ApplicationError):
    """Malformed input (400)."""


class Unauthenticated(ApplicationError):
    """No or wrong credentials (401)."""

    status = 401
    default_code = "unauthenticated"


class Forbidden(ApplicationError):
    """Known, but not allowed (403)."""

    status = 403
    default_code = "forbidden"


class NotFound(ApplicationError):
    """No such thing (404)."""

    status = 404
    default_code = "not_found"


class Conflict(ApplicationError):
    """Conflicts with what exists (409)."""

    status = 409
    default_code = "conflict"


class UpstreamFailed(ApplicationError):
    """A probe failed, a node answered nonsense, or all nodes failed (502)."""

    status = 502
    default_code = "upstream"


class Unavailable(ApplicationError):
    """One needed node is unreachable, a file is broken or the lock is taken (503)."""

    status = 503
    default_code = "unavailable"

    def __init__(self, message: str, *, retry_after: int = 2, **kwargs: Any) -> None:
        super().__init__(message, **kwargs)
        self.retry_after = retry_after


class NodeRefused(ApplicationError):
    """A storage node said no: its status code and its words (or ours about it).

    Programs get at most 200 characters of a node's words, pages all of them.
    """

    default_code = "node.refused"
    #: What programs get of a node's words: contract.md, section 1.
    most = 200

    def __init__(self, *, agent: str, status: int, error: str) -> None:
        self.agent = agent
        self.error = error if isinstance(error, Said) else clipped(error, self.most)
        super().__init__(
            said("node {agent}: {error}", agent=agent, error=self.error),
            extra={"agent": agent},
        )
        self.status = status

    def detail(self) -> Any:
        """`{"agent", "error"}`, as contract.md section 1 fixes it."""
        return {"agent": self.agent, "error": self.error}
