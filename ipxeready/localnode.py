"""The node `local` of `make run`: told to the control plane over its API, once."""

from __future__ import annotations

import json
import urllib.error
from dataclasses import dataclass, field
from typing import Any, Final

from ipxeready.reach import fetch
from ipxeready.startup import StartError

NODE: Final = "local"


@dataclass(frozen=True)
class Api:
    """The control plane's API."""

    url: str
    token: str = field(repr=False)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The body of the answer; StartError when it is refused or there is none."""
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Accept": "application/json",
        }
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        try:
            return fetch(self.url + path, method, headers, data)
        except urllib.error.HTTPError as error:
            words = error.read().decode("utf-8", "replace")[:300]
            message = f"the control plane refuses {method} {path}: {error.code} {words}"
            raise StartError(message) from None
        except OSError as error:
            message = f"the control plane does not answer {method} {path}: {error}"
            raise StartError(message) from None


def register(api: Api, *, base_url: str, token: str, iscsi_server: str) -> str | None:
    """Register the node unless it is there; a hint when it is, with another `iscsi_server`."""
    for node in api.call("GET", "/agents"):
        if node.get("id") == NODE:
            known = str(node["iscsi_server"])
            return None if known == iscsi_server else other_server(known, iscsi_server)
    found = api.call("POST", "/agents/probe", {"base_url": base_url, "token": token})
    node = {
        "id": NODE,
        "base_url": base_url,
        "token": token,
        "iscsi_server": iscsi_server,
        "role": found["role"],
        "tags": found["tags"],
        "enabled": True,
    }
    api.call("POST", "/agents", node)
    return None


def other_server(known: str, ours: str) -> str:
    """The hint for a node that was registered before the machines' card was known."""
    return (
        f"node {NODE} sends machines to {known or 'the host of its address'} for their disks, but on "
        f"their network we are {ours}; if they do not reach the former: "
        f".venv/bin/python manage.py agents edit {NODE} --iscsi-server {ours}"
    )
