"""One JSON object of settings as records: one key, one record; order and unknown keys stay."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ipxeready.said import said
from ipxeready.storage import jsonl
from ipxeready.storage.broken import FileBroken
from ipxeready.storage.yamledit import same
from ipxeready.storage.yamlload import decode
from ipxeready.storage.yamlrecords import Entry


class JsonText:
    """The keys of a JSON object; FileBroken when the file is no such thing."""

    def __init__(self, content: bytes) -> None:
        self._values: dict[str, Any] = {}
        self._content: bytes | None = content
        text = decode(content).removeprefix("\ufeff")
        if not text.strip():
            return
        try:
            value = jsonl.loads(text, object_pairs_hook=_no_doubles)
        except json.JSONDecodeError as error:
            raise FileBroken(error.msg, error.lineno, error.colno) from None
        except (ValueError, RecursionError) as error:
            raise FileBroken(str(error), 1, 1) from None
        if not isinstance(value, dict):
            raise FileBroken(said("the file must hold one JSON object"), 1, 1)
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = ascii(error.object[error.start])
            raise FileBroken(
                said("{half} is half a character", half=half), 1, 1
            ) from None
        self._values = value

    def entries(self) -> dict[str, Entry]:
        """Every key with a digest of its value; JSON keeps no lines worth naming."""
        found = {}
        for key, value in self._values.items():
            text = json.dumps(value, sort_keys=True).encode()
            digest = hashlib.blake2b(text, digest_size=16).hexdigest()
            found[key] = Entry(key, 0, digest)
        return found

    def entries_of(self, keys: list[str]) -> dict[str, Entry]:
        """The same for a few keys."""
        every = self.entries()
        return {key: every[key] for key in keys if key in every}

    def check(self, keys: list[str]) -> bool:
        """Nothing more to check: the whole file was parsed."""
        return False

    def value(self, key: str) -> Any:
        """The value of `key`, None when absent."""
        return self._values.get(key)

    def put(self, key: str, new: Any) -> None:
        """Set one key."""
        if key in self._values and same(self._values[key], new):
            return
        self._values[key] = new
        self._content = None

    def remove(self, key: str) -> bool:
        """Take one key out; False when it is not there."""
        if key not in self._values:
            return False
        del self._values[key]
        self._content = None
        return True

    def snapshot(self) -> Any:
        """State to go back to with `restore`."""
        return dict(self._values), self._content

    def restore(self, state: Any) -> None:
        """Go back to a snapshot."""
        values, self._content = state
        self._values = dict(values)

    def render(self) -> bytes:
        """The file's bytes as they should be written."""
        if self._content is not None:
            return self._content
        return (json.dumps(self._values, ensure_ascii=False, indent=2) + "\n").encode()


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen:
            raise FileBroken(
                said("the key {key} stands twice; remove one", key=repr(key)), 1, 1
            )
        seen[key] = value
    return seen
