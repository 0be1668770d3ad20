"""One HTTP exchange with a storage node: pooled, limited in time and size, every failure in our own words."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ReadTimeoutError
from urllib3.util.retry import Retry

from ipxeready.prefer import HEADER as PREFER
from ipxeready.said import said

CONNECT_TIMEOUT = 3.0
#: A list of targets of a large node is a few MiB; more is not an answer.
MAX_ANSWER = 32 << 20
_CHUNK = 64 * 1024
#: Handed on at once of a body that only passes through.
_PIECE = 256 * 1024

_local = threading.local()


class Unreached(Exception):
    """No answer; `sent` tells whether the node may have got the request. The text is for people."""

    def __init__(self, words: str, *, sent: bool) -> None:
        super().__init__(words)
        self.words = words
        self.sent = sent


class Nonsense(Exception):
    """An answer that a node of ours never gives. The text is for people."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


class CutShort(Exception):
    """The one whose bytes are handed on has stopped sending."""


class Piece:
    """`length` bytes that `read` gives: sent as they come, with a Content-Length, never held as a whole."""

    def __init__(self, read: Callable[[int], bytes], length: int) -> None:
        self._read = read
        self._left = length
        #: What `requests` takes for the Content-Length.
        self.len = length

    def __iter__(self) -> Iterator[bytes]:
        """In pieces; this is also how `requests` tells a stream."""
        while chunk := self.read(_PIECE):
            yield chunk

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most so many; CutShort when there are fewer than were promised."""
        if not self._left:
            return b""
        wanted = min(self._left, _PIECE if size < 0 else max(size, _PIECE))
        try:
            chunk = self._read(wanted)
        except OSError:
            chunk = b""
        if not chunk:
            raise CutShort(f"{self._left} bytes are missing")
        self._left -= len(chunk)
        return chunk


class _Retry(Retry):
    """Once more when a pooled connection turns out to be closed; never after a time limit."""

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: Any = None,
        error: Exception | None = None,
        _pool: Any = None,
        _stacktrace: Any = None,
    ) -> Self:
        if isinstance(error, ReadTimeoutError):
            raise error
        return super().increment(method, url, response, error, _pool, _stacktrace)


class _Timed(io.RawIOBase):
    """A socket's bytes until a deadline: a time limit for each piece would let a node drip for ever."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)
        limit = sock.gettimeout()
        self._deadline = None if limit is None else time.monotonic() + limit

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """The next bytes, or TimeoutError."""
        if self._deadline is not None:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            self._sock.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """Let go of the socket."""
        self._raw.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    """An answer whose head and body share one time limit, the one set on the socket."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp.close()
        self.fp = io.BufferedReader(_Timed(sock))


class _Connection(HTTPConnection):
    response_class = _Answer


class _TlsConnection(HTTPSConnection):
    response_class = _Answer


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class _Adapter(HTTPAdapter):
    """Connections that notice a machine that was switched off while we wait for a long copy."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        kwargs["socket_options"] = [
            *HTTPConnection.default_socket_options,
            (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
            (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
            (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
            (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 6),
        ]
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}


def _new_session() -> requests.Session:
    session = requests.Session()
    # No proxy, no .netrc: the environment must not decide where a token goes.
    session.trust_env = False
    retry = _Retry(
        total=1,
        connect=0,
        read=1,
        redirect=0,
        status=0,
        other=0,
        allowed_methods={"GET"},
        raise_on_status=False,
    )
    adapter = _Adapter(pool_connections=32, pool_maxsize=1, max_retries=retry)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session


@contextlib.contextmanager
def _session(method: str) -> Iterator[requests.Session]:
    """This thread's session for reading; a fresh one for changes, which cannot be repeated when a kept connection dies."""
    if method == "GET":
        if getattr(_local, "pid", None) != os.getpid():
            _local.session, _local.pid = _new_session(), os.getpid()
        yield _local.session
        return
    with _new_session() as session:
        yield session


def exchange(
    method: str,
    url: str,
    *,
    token: str,
    params: Mapping[str, str] | None = None,
    body: Mapping[str, Any] | None = None,
    prefer: str = "",
    piece: Piece | None = None,
    timeout: float,
) -> tuple[int, Any]:
    """Status and JSON of the answer (None when an error's body is none). Raises Unreached or Nonsense.

    `piece` is sent as it is in the place of a JSON body; CutShort when it turns out to be shorter than it said.

    `timeout` is for the whole answer, not for each piece of it.
    """
    headers = {"Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if prefer:
        headers[PREFER] = prefer
    if piece is not None:
        headers["Content-Type"] = "application/octet-stream"
    try:
        with (
            _session(method) as session,
            session.request(
                method,
                url,
                params=params,
                json=body,
                data=piece,
                headers=headers,
                timeout=(CONNECT_TIMEOUT, timeout),
                allow_redirects=False,
                stream=True,
            ) as response,
        ):
            content = _read(response)
            status = response.status_code
    except requests.ConnectTimeout:
        words = said("no connection within {seconds} s", seconds=f"{CONNECT_TIMEOUT:g}")
        raise Unreached(words, sent=False) from None
    except requests.Timeout:
        words = said("no answer within {seconds} s", seconds=f"{timeout:g}")
        raise Unreached(words, sent=True) from None
    except requests.RequestException as error:
        what, sent = _words(error)
        raise Unreached(what, sent=sent) from None
    if 300 <= status < 400:
        raise Nonsense(
            said(
                "it answers with a redirect, which is not followed; give the address of the "
                "agent itself"
            )
        )
    try:
        return status, json.loads(content)
    except ValueError:
        if status >= 400:
            return status, None
        raise Nonsense(
            said("its answer is not JSON; is an ipxeready agent listening there?")
        ) from None


def _read(response: requests.Response) -> bytes:
    content = bytearray()
    for chunk in response.iter_content(_CHUNK):
        content += chunk
        if len(content) > MAX_ANSWER:
            raise Nonsense(
                said("its answer is longer than {most} bytes", most=MAX_ANSWER)
            )
    return bytes(content)


def _words(error: BaseException) -> tuple[str, bool]:
    """What went wrong below `requests`, without its tower of class names, and whether it was sent."""
    seen: list[BaseException] = []
    todo: list[Any] = [error]
    while todo:
        one = todo.pop(0)
        if not isinstance(one, BaseException) or one in seen:
            continue
        seen.append(one)
        todo += [getattr(one, "reason", None), one.__cause__, one.__context__]
        todo += list(one.args)
    names = {type(one).__name__ for one in seen}
    never = bool(names & {"NewConnectionError", "NameResolutionError", "SSLError"})
    if any(isinstance(one, socket.gaierror) for one in seen):
        return said("its name is not known"), False
    for one in seen:
        if isinstance(one, OSError) and one.strerror and one.errno is not None:
            return one.strerror.lower(), not never
    if "ReadTimeoutError" in names:
        return said("its answer did not come to its end in time"), True
    if "SSLError" in names:
        return said("TLS failed"), False
    return said("the connection was closed without an answer"), not never
