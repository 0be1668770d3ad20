"""What is wrong with storage nodes, from what they said when they were last asked."""

from __future__ import annotations

from collections.abc import Iterator

from django.contrib.admin.utils import quote
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from agents import known, selectors
from ipxeready.said import joined
from ipxeready.web.troubles import Item, Trouble, kind, many

DOWN = kind(
    "node.down",
    title=ngettext_lazy(
        "%(count)s storage node does not answer: machines with disks there cannot start or stand still",
        "%(count)s storage nodes do not answer: machines with disks there cannot start or stand still",
        "count",
    ),
    mend=_(
        "Look at the machine, its network and ipxeready-agent.service there. Switch the node off here if it is gone for good."
    ),
)
COMPLAINS = kind(
    "node.problem",
    title=ngettext_lazy(
        "%(count)s thing on storage nodes needs a look",
        "%(count)s things on storage nodes need a look",
        "count",
    ),
    mend=_("The node's page says more; what to do stands in the words of the node."),
)


def sources() -> Iterator[Trouble]:
    """Enabled nodes only: one that is switched off is nobody's concern."""
    nodes = list(selectors.agents().filter(enabled=True))
    down: list[Item] = []
    complaints: list[Item] = []
    for name, seen in known.known(nodes).items():
        page = reverse("admin:agents_agent_change", args=[quote(name)])
        if seen.error:
            told = complaints if seen.reachable else down
            told.append(Item(joined(": ", name, seen.error), page))
        complaints += [Item(joined(": ", name, words), page) for words in seen.problems]
    yield from many(DOWN, down, _same)
    yield from many(COMPLAINS, complaints, _same)


def _same(item: Item) -> Item:
    return item
