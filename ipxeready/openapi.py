"""/schema: the API as its code describes it, and beside it what firmware asks."""

from __future__ import annotations

from typing import Any

from drf_spectacular.renderers import (
    OpenApiJsonRenderer,
    OpenApiJsonRenderer2,
    OpenApiYamlRenderer,
    OpenApiYamlRenderer2,
)
from drf_spectacular.views import SpectacularAPIView
from rest_framework.renderers import BrowsableAPIRenderer

from ipxeready.web.permissions import RolePermission


class SchemaView(SpectacularAPIView):
    """The OpenAPI document: JSON, YAML where that is asked for, a page for browsers."""

    renderer_classes = [
        OpenApiJsonRenderer2,
        OpenApiJsonRenderer,
        OpenApiYamlRenderer,
        OpenApiYamlRenderer2,
        BrowsableAPIRenderer,
    ]
    permission_classes = [RolePermission]


def _text(description: str, kind: str = "text/plain") -> dict[str, Any]:
    content = {kind: {"schema": {"type": "string"}}}
    return {"description": description, "content": content}


def _query(name: str, *values: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    if values:
        schema["enum"] = list(values)
    return {"in": "query", "name": name, "schema": schema}


_JSON = {"application/json": {"schema": {"type": "object"}}}
#: Plain views, past the API's machinery: open to all, on any Host, without redirects.
FIRMWARE: dict[str, Any] = {
    "/boot-vars": {
        "get": {
            "operationId": "get_boot_vars",
            "description": "The boot variables of the machine that asks: an iPXE script, or JSON.",
            "parameters": [
                _query("mac"),
                _query("hostname"),
                _query("format", "ipxe", "json"),
            ],
            "responses": {
                "200": {
                    "description": "Always: firmware must never see an error page.",
                    "content": {
                        "text/plain": {"schema": {"type": "string"}},
                        **_JSON,
                    },
                }
            },
        }
    },
    "/file/{path}": {
        "get": {
            "operationId": "get_file_by_path",
            "description": "A file of the public directory, in whole or in part (Range).",
            "parameters": [
                {
                    "in": "path",
                    "name": "path",
                    "required": True,
                    "schema": {"type": "string"},
                }
            ],
            "responses": {
                "200": _text("The file.", "application/octet-stream"),
                "206": _text(
                    "The part that was asked for.", "application/octet-stream"
                ),
                "304": {"description": "Not changed."},
                "404": _text("No such file."),
                "412": {"description": "Changed meanwhile."},
                "416": _text("No such part."),
                "503": _text("All places for files are taken."),
            },
        }
    },
    "/healthz": {
        "get": {
            "operationId": "get_healthz",
            "description": "One word while we serve; with verbose (authenticated) the parts.",
            "parameters": [_query("verbose", "true", "false", "1", "0")],
            "responses": {
                "200": {"description": "Serving.", "content": _JSON},
                "400": {"description": "No boolean.", "content": _JSON},
                "401": {"description": "verbose needs credentials.", "content": _JSON},
            },
        }
    },
}


def with_firmware(result: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
    """Add what plain views answer."""
    for path, operations in FIRMWARE.items():
        for operation in operations.values():
            operation.setdefault("security", [{}])
            operation.setdefault("tags", [path.split("/")[1]])
        result["paths"].setdefault(path, operations)
    result["paths"] = dict(sorted(result["paths"].items()))
    return result
