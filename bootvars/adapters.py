"""state/settings.json: one key, one row."""

from __future__ import annotations

from pathlib import Path

from bootvars.models import Setting
from ipxeready.index.models import IndexedModel
from ipxeready.index.sources import JsonSource
from ipxeready.said import said
from ipxeready.storage.broken import RecordBroken
from ipxeready.storage.jsonrecords import JsonText
from ipxeready.storage.paths import Layout

AUTO_REGISTER = "auto_register"


class SettingsSource(JsonSource):
    """What was chosen while running; it beats the environment."""

    name = "settings"
    models = (Setting,)
    default = b"{}\n"

    def path(self, layout: Layout) -> Path:
        """state/settings.json."""
        return layout.settings_json

    def rows(self, text: JsonText, key: str) -> list[IndexedModel]:
        """The setting; keys that we do not know stay in the file and say nothing."""
        value = text.value(key)
        if key != AUTO_REGISTER:
            return []
        if not isinstance(value, bool):
            raise RecordBroken(
                said("{key}: {value} must be true or false", key=key, value=repr(value))
            )
        return [Setting(record=key, key=key, value=value)]
