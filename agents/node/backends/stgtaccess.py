"""Who may log in to a target of tgtd: its access rules and accounts, changed so that nobody is let in on the way.

What tgtd 1.0.85 does (tested): a target without rules lets nobody in; one rule that fits is enough, so `ALL` beside a
name still means everybody; an account that is bound is asked for beside the rules; deleting an account takes it off
every target, and a target without accounts asks for none. tgtd never shows a secret, and tgtadm takes it from its
arguments only: for the milliseconds of that call the node's own users can see it in the list of processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agents.node.backends.tgtadm import EXISTS, MISSING, Tgtadm, TgtError
from agents.node.backends.tgtlisting import Shown
from agents.protocol.access import CHAP, OFF, Access, Chap
from ipxeready.errors import Conflict
from ipxeready.said import said

EVERYONE = "ALL"
_NAMES = ("iqn.", "eui.", "naa.")


class Doors:
    """The rules and accounts of one tgtd. Each change is noted in the `Shown` it was made on."""

    def __init__(self, tgtadm: Tgtadm, ours: Callable[[str], bool]) -> None:
        self._tgtadm = tgtadm
        self._ours = ours
        self._given: dict[str, str] = {}
        """The secrets that this process has given to tgtd, by account: it never shows them."""

    def open(
        self, shown: Shown, access: Access | None, everything: Mapping[str, Shown]
    ) -> None:
        """Let in exactly whom `access` says; None: whom the rules let in that are there, else everybody.

        Accounts come before rules, and rules before what they make superfluous, so that at no moment more may log
        in than before or after.
        """
        if access is None:
            if not shown.acl:
                self._rule("bind", shown, EVERYONE)
            return
        if access.mode == OFF:
            wanted = EVERYONE
        elif access.initiator is not None:
            wanted = access.initiator
        else:
            raise ValueError(f"access {access.mode} without an initiator")
        account = None
        if access.mode == CHAP:
            if access.chap is None:
                raise ValueError("access chap without a secret")
            account = access.chap.username
            self._account(access.chap, shown, everything)
        if wanted not in shown.acl:
            self._rule("bind", shown, wanted)
        for rule in [rule for rule in shown.acl if rule != wanted]:
            self._rule("unbind", shown, rule)
        for name in [name for name in shown.accounts if name != account]:
            self._tie("unbind", shown, name)
        for name in list(shown.outgoing):
            self._tie("unbind", shown, name, outgoing=True)

    def close(self, shown: Shown) -> list[str]:
        """Let nobody in any more; the rules that were there."""
        rules = list(shown.acl)
        for rule in rules:
            self._rule("unbind", shown, rule)
        return rules

    def accounts(self, shown: Shown) -> list[str]:
        """The accounts of a target that are ours: those of our mode chap."""
        return list(shown.accounts) if shown.access()["access"] == CHAP else []

    def tidy(self, names: list[str], left: Mapping[str, Shown]) -> None:
        """Delete those of our accounts that no target is left for."""
        for name in names:
            if not any(
                name in shown.accounts + shown.outgoing for shown in left.values()
            ):
                self._delete(name)

    # -- inside ----------------------------------------------------------

    def _account(
        self, chap: Chap, shown: Shown, everything: Mapping[str, Shown]
    ) -> None:
        """Have an account with that secret, bound to the target."""
        name = chap.username
        if self._given.get(name) == chap.secret:
            if name in shown.accounts:
                return
            try:
                self._tie("bind", shown, name)
            except TgtError as error:
                if error.kind != MISSING:  # another tgtd by now
                    raise
            else:
                return
        self._given.pop(name, None)
        if not self._new(chap):
            self._replace(chap, everything)
        self._given[name] = chap.secret
        if name not in shown.accounts:
            self._tie("bind", shown, name)

    def _replace(self, chap: Chap, everything: Mapping[str, Shown]) -> None:
        """Give an account that is there another secret; its targets are shut meanwhile, and nobody is cut off."""
        name = chap.username
        users = [
            shown
            for shown in everything.values()
            if name in shown.accounts + shown.outgoing
        ]
        for user in users:
            if not self._ours(user.iqn):
                raise Conflict(
                    said(
                        "tgtd has an account {name} for {iqn}, which is not ours. Give this initiator "
                        "another username.",
                        name=repr(name),
                        iqn=user.iqn,
                    ),
                    code="chap.foreign",
                )
        rules = [(user, self.close(user)) for user in users]
        self._delete(name)
        for user in users:
            user.accounts = [known for known in user.accounts if known != name]
            user.outgoing = [known for known in user.outgoing if known != name]
        self._new(chap)
        for user, before in rules:
            self._tie("bind", user, name)
            for rule in before:
                self._rule("bind", user, rule)

    def _new(self, chap: Chap) -> bool:
        """Make an account; False when there is one of that name."""
        words = ("--user", chap.username, "--password", chap.secret)
        try:
            self._tgtadm.run("new", "account", *words)
        except TgtError as error:
            if error.kind != EXISTS:
                raise
            return False
        return True

    def _delete(self, name: str) -> None:
        self._given.pop(name, None)
        try:
            self._tgtadm.run("delete", "account", "--user", name)
        except TgtError as error:
            if error.kind != MISSING:
                raise

    def _tie(
        self, operation: str, shown: Shown, name: str, *, outgoing: bool = False
    ) -> None:
        """Bind or unbind an account and a target."""
        words = ["--tid", str(shown.tid), "--user", name]
        if outgoing:
            words.append("--outgoing")
        names = shown.outgoing if outgoing else shown.accounts
        try:
            self._tgtadm.run(operation, "account", *words)
        except TgtError as error:
            if error.kind != (EXISTS if operation == "bind" else MISSING):
                raise
        _note(names, operation, name)

    def _rule(self, operation: str, shown: Shown, rule: str) -> None:
        """Bind or unbind a rule and a target."""
        flag = "-Q" if rule.startswith(_NAMES) else "-I"
        try:
            self._tgtadm.run(operation, "target", "--tid", str(shown.tid), flag, rule)
        except TgtError as error:
            if error.kind != (EXISTS if operation == "bind" else MISSING):
                raise
        _note(shown.acl, operation, rule)


def _note(known: list[str], operation: str, name: str) -> None:
    if operation == "bind" and name not in known:
        known.append(name)
    if operation == "unbind" and name in known:
        known.remove(name)
