"""One call of a storage node: its token, its address, and its refusals as our errors."""

from __future__ import annotations

import json
import os
from typing import Any

from django.conf import settings

from agents import http
from agents.models import Agent
from agents.protocol.limits import MAX_ERROR, MAX_WORDS
from agents.validators import variable_of
from ipxeready.errors import ApplicationError, NodeRefused, Unavailable, UpstreamFailed
from ipxeready.said import clipped, joined, said


class Calls:
    """Asks one storage node. What it is asked is said by those that come of this."""

    def __init__(self, agent: Agent, *, timeout: float | None = None) -> None:
        self.agent = agent
        #: Seconds for one quick call.
        self.timeout = (
            timeout if timeout is not None else float(settings.IPXE.agent_timeout)
        )

    def _call(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, str] | None = None,
        body: dict[str, Any] | None = None,
        piece: http.Piece | None = None,
        timeout: float | None = None,
    ) -> Any:
        return self._exchange(
            method, path, params=params, body=body, piece=piece, timeout=timeout
        )[1]

    def _exchange(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, str] | None = None,
        body: dict[str, Any] | None = None,
        piece: http.Piece | None = None,
        prefer: str = "",
        timeout: float | None = None,
    ) -> tuple[int, Any]:
        agent = self.agent
        token = expand_token(agent)
        try:
            status, answer = http.exchange(
                method,
                agent.base_url + path,
                token=token,
                params=params,
                body=body,
                prefer=prefer,
                piece=piece,
                timeout=self.timeout if timeout is None else max(timeout, self.timeout),
            )
        except http.Unreached as error:
            raise unreachable(agent, error.words, sent=error.sent) from None
        except http.Nonsense as error:
            raise self._nonsense(error.words) from None
        if status >= 400:
            raise self._refusal(status, _without_secret(answer, body))
        return status, answer

    def _refusal(self, status: int, answer: Any) -> ApplicationError:
        words = node_words(answer) or said(
            "HTTP {status} without a reason", status=status
        )
        if status in (401, 403):
            words = said(
                "the node does not take our token (HTTP {status}); correct it in the registry",
                status=status,
            )
            return NodeRefused(agent=self.agent.id, status=502, error=words)
        # A node's bug is not ours: 500 is kept for our own.
        return NodeRefused(
            agent=self.agent.id, status=502 if status == 500 else status, error=words
        )

    def _nonsense(self, words: str) -> UpstreamFailed:
        agent = self.agent
        return UpstreamFailed(
            joined(": ", named(agent), words),
            code="agent.nonsense",
            extra={"agent": agent.id},
        )


def expand_token(agent: Agent) -> str:
    """The node's token for use, `${NAME}` of the file replaced; Unavailable when that variable is not set."""
    name = variable_of(agent.token)
    if name is None:
        return agent.token
    value = os.environ.get(name, "").strip()
    if not value or not value.isascii() or not value.isprintable() or " " in value:
        raise Unavailable(
            said(
                "node {agent}: its token is ${{{name}}} in config/agents.yml, but the "
                "environment of the control plane has no usable {name}; set it and restart, "
                "or write the token itself",
                agent=agent.id,
                name=name,
            ),
            code="agent.token",
            extra={"agent": agent.id, "sent": False},
        )
    return value


def named(agent: Agent) -> str:
    """A node for a sentence; before it is registered, its address."""
    if not agent.id:
        return agent.base_url
    return said("node {agent} at {base_url}", agent=agent.id, base_url=agent.base_url)


def unreachable(agent: Agent, words: str, *, sent: bool = False) -> Unavailable:
    """The error of a node that does not answer; `extra["sent"]` tells whether it may have got the request."""
    return Unavailable(
        said(
            "{node} is unreachable: {words}; see whether its agent runs and the address "
            "is right",
            node=named(agent),
            words=words,
        ),
        code="agent.unreachable",
        extra={"agent": agent.id, "sent": sent},
    )


def node_words(answer: Any) -> str:
    """The reason in a node's error body as one line of at most 200 characters, more of them on a page; empty when there is none."""
    detail = answer.get("detail") if isinstance(answer, dict) else None
    if isinstance(detail, dict):
        parts = []
        for field, texts in detail.items():
            joined = (
                " ".join(map(str, texts)) if isinstance(texts, list) else str(texts)
            )
            parts.append(joined if str(field) in joined else f"{field}: {joined}")
        detail = "; ".join(parts)
    elif isinstance(detail, list):
        detail = " ".join(map(str, detail))
    if not isinstance(detail, str):
        return ""
    words = " ".join("".join(c if c.isprintable() else " " for c in detail).split())
    return clipped(words[:MAX_WORDS], MAX_ERROR)


def _without_secret(answer: Any, body: dict[str, Any] | None) -> Any:
    """An answer that repeats the secret it was sent, with the secret taken out: no node here does, an odd one might."""
    secret = ((body or {}).get("chap") or {}).get("secret")
    if not secret:
        return answer
    return json.loads(json.dumps(answer).replace(secret, "..."))
