"""Which workers a form of the board is about, and the node of each: ticked rows, and what other pages of the list had."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext as _t

from ipxeready.errors import Invalid
from workers.batch_items import MOST
from workers.filters import filtered
from workers.validators import check_id, check_worker_id

#: The filters of the board's list, which `all` goes by.
FILTERS = ("search", "state", "os", "agent", "has_disk")
#: Before the name of a node, in the text of a choice.
_MARK = "*"
_ROW = "node:"


def written(chosen: Mapping[str, str]) -> str:
    """The choice as one field of a form: `*node-a pc1 pc2 *node-b pc3`; after a bare `*` come those without a node."""
    nodes: dict[str, list[str]] = {}
    for name, node in chosen.items():
        nodes.setdefault(node, []).append(name)
    return " ".join(
        " ".join([f"{_MARK}{node}", *names]) for node, names in nodes.items()
    )


def read(text: str) -> dict[str, str]:
    """The choice in such a text; Invalid for what is no id."""
    found: dict[str, str] = {}
    node = ""
    for word in text.split():
        if word.startswith(_MARK):
            name = word.removeprefix(_MARK)
            node = check_id(name, "node") if name else ""
        else:
            found[check_worker_id(word)] = node
    return found


def chosen_of(request: HttpRequest) -> dict[str, str]:
    """Worker and node (empty: none named) of a form that was sent; Invalid when it is too many.

    What the field `chosen` says, but of the rows on the page what their own fields say; with `all` everything that the
    filters find.
    """
    data = request.POST
    found = read(data.get("chosen", ""))
    rows = {
        check_worker_id(key.removeprefix(_ROW)): str(value)
        for key, value in data.items()
        if key.startswith(_ROW)
    }
    for name in rows:
        found.pop(name, None)
    for name in map(check_worker_id, data.getlist("worker")):
        found[name] = _node(rows.get(name, ""))
    if data.get("all"):
        for name in matching(QueryDict(data.get("filters", ""))):
            found.setdefault(name, _node(rows.get(name, "")))
    if len(found) > MOST:
        raise Invalid(
            _t("%(number)s workers are chosen; at most %(most)s are taken at once")
            % {"number": len(found), "most": MOST}
        )
    return found


def matching(given: Mapping[str, str]) -> list[str]:
    """The ids that the board's filters find, one more than may be chosen at most."""
    rows = filtered(filters_in(given)).values_list("worker_id", flat=True)
    return list(rows[: MOST + 1])


def filters_in(given: Mapping[str, str]) -> dict[str, str]:
    """Those of the filters that are set."""
    return {name: given[name] for name in FILTERS if given.get(name)}


def _node(text: str) -> str:
    return check_id(text, "node") if text else ""
