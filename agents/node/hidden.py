"""Our own small files in the image directory: read without following a link, replaced durably or not at all."""

from __future__ import annotations

import json
import os
import secrets
import stat
from typing import Any

from agents.node.folder import Folder
from agents.node.parts import PART
from ipxeready.errors import Unavailable
from ipxeready.said import said


class HiddenFile:
    """One JSON object in a file of the image directory. `mend` ends the message about a broken one."""

    def __init__(
        self, folder: Folder, name: str, *, mode: int, code: str, mend: str
    ) -> None:
        self._folder = folder
        self._name = name
        self._mode = mode
        self._code = code
        self._mend = mend
        self._last: tuple[bytes, dict[str, Any]] | None = None
        """What the file had when it was read last, and what that says: a call reads it several times.

        One value, as not everybody who reads holds the node's lock.
        """

    def read(self) -> dict[str, Any] | None:
        """The object as the file has it now; None without a file; a broken file is Unavailable.

        A file that only its owner may read must not be open to others.
        """
        with self._folder.handle() as folder:
            try:
                file = os.open(
                    self._name,
                    os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
                    dir_fd=folder,
                )
            except FileNotFoundError:
                return None
            except OSError as error:
                raise self.broken(error.strerror or str(error)) from error
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for for ever
                os.close(file)
                raise self.broken(said("it is not a regular file"))
            with os.fdopen(file, "rb") as stream:
                mode = status.st_mode & 0o777
                if mode & ~self._mode & 0o077 and not self._mode & 0o077:
                    raise Unavailable(
                        said(
                            "{path} has mode {mode}, so others may read the secrets in it. Run `chmod {wanted}` "
                            "on it, and give out new secrets if somebody may have.",
                            path=self.path,
                            mode=f"{mode:04o}",
                            wanted=f"{self._mode:04o}",
                        ),
                        code=f"{self._code}.mode",
                    )
                raw = stream.read()
        last = self._last
        if last is not None and raw == last[0]:
            return _copy(last[1])
        # What a decoder quotes of the file may be a secret: only the place is told.
        fault = ""
        try:
            data = json.loads(raw)
        except json.JSONDecodeError as error:
            fault = said(
                "line {line}, column {column}: {words}",
                line=error.lineno,
                column=error.colno,
                words=error.msg,
            )
        except (ValueError, RecursionError) as error:
            fault = said(
                "line 1, column 1: no JSON ({kind})", kind=type(error).__name__
            )
        if fault:
            raise self.broken(fault)
        if not isinstance(data, dict):
            raise self.broken(said("line 1, column 1: not a JSON object"))
        self._last = raw, _copy(data)
        return data

    def write(self, data: dict[str, Any]) -> None:
        """Replace the file, durably."""
        raw = json.dumps(data, indent=2, ensure_ascii=False).encode() + b"\n"
        name = f"{self._name}.{secrets.token_hex(6)}{PART}"
        with self._folder.handle() as folder:
            try:
                file = os.open(
                    name,
                    os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC,
                    self._mode,
                    dir_fd=folder,
                )
                try:
                    with os.fdopen(file, "wb") as stream:
                        stream.write(raw)
                        stream.flush()
                        os.fsync(stream.fileno())
                    os.rename(name, self._name, src_dir_fd=folder, dst_dir_fd=folder)
                except BaseException:
                    os.unlink(name, dir_fd=folder)
                    raise
                os.fsync(folder)
            except OSError as error:
                raise Unavailable(
                    said(
                        "{path} could not be written ({why}); nothing was changed.",
                        path=self.path,
                        why=error.strerror,
                    ),
                    code=f"{self._code}.write",
                ) from error

    @property
    def path(self) -> str:
        """Where it is, for messages."""
        return self._folder.path(self._name)

    def broken(self, where: str) -> Unavailable:
        """The error of a file that says something we don't understand."""
        return Unavailable(
            said(
                "{path} cannot be read: {where}. {mend}",
                path=self.path,
                where=where,
                mend=self._mend,
            ),
            code=f"{self._code}.broken",
        )


def _copy(data: dict[str, Any]) -> dict[str, Any]:
    """For callers that change what they get: lists and objects at the top."""
    return {
        key: value.copy() if isinstance(value, dict | list) else value
        for key, value in data.items()
    }
