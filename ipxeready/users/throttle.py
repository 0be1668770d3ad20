"""Guessing becomes slow: failed logins are counted by account and by address, in all processes together.

Three counts, each with its own patience:

* this account from this address: a person who mistypes, or who guesses, waits first,
* this address: one who tries many accounts,
* this account from anywhere: many addresses that guess together. It never keeps out an address from which the account
  has logged in before, and never anybody for longer than a minute, so that nobody can be locked out by others for ever.

While a wait lasts, tries are refused without looking at the password, and are not counted.
"""

from __future__ import annotations

import ipaddress
import math
import time
from dataclasses import dataclass
from typing import Final

from django.conf import settings

from ipxeready.storage.counters import Count, Counters, Key, Open

#: Kinds of counters.
PAIR, ADDRESS, ACCOUNT, KNOWN, BEARER, LINES, ALL_LINES, UNWRITTEN = range(1, 9)


@dataclass(frozen=True)
class Patience:
    """How many failures are free, and how the wait after each further one grows: it doubles up to `most`."""

    free: int
    first: float
    most: float
    #: Seconds without a failure after which all is forgotten.
    forget: float = 3600.0

    def present(self, count: Count, now: float) -> Count:
        """The count as it still matters; a clock that was set back does not lock anybody out."""
        age = now - count.last
        return count if -1.0 <= age <= self.forget else Count()

    def wait(self, count: Count, now: float) -> float:
        """Seconds until the next try."""
        over = self.present(count, now).number - self.free
        if over < 0:
            return 0.0
        pause = min(self.most, self.first * 2.0 ** min(over, 40))
        return max(0.0, count.last + pause - now)


PATIENCE: Final = {
    PAIR: Patience(free=5, first=2.0, most=900.0),
    # A class room behind one address mistypes more than one person does.
    ADDRESS: Patience(free=40, first=2.0, most=900.0),
    ACCOUNT: Patience(free=60, first=1.0, most=60.0),
}
#: Wrong bearer tokens: the answer comes later and later, at most so much; the right token never waits.
TOKENS: Final = Patience(free=20, first=0.1, most=2.0)
#: Seconds that an address is known from which an account has logged in.
KNOWN_FOR: Final = 30 * 24 * 3600.0
#: Audit lines of refusals in a minute: from one address, and in all. What is more is counted and written as one line.
MINUTE: Final = 60.0
LINES_EACH: Final = 10
LINES_ALL: Final = 100

_made: dict[str, Counters] = {}


def counters() -> Counters:
    """This root's counters."""
    path = settings.IPXE_LAYOUT.login_counters
    found = _made.get(str(path))
    if found is None:
        found = _made[str(path)] = Counters(path, settings.SECRET_KEY.encode())
    return found


def network(address: str) -> str:
    """Whose address this is: with IPv6 one customer has a whole /64 of them."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return str(found)
    return str(ipaddress.ip_network((found, 64), strict=False))


def _keys(held: Open, account: str, address: str, now: float) -> list[Key]:
    """What a try counts for."""
    keys = [Key(PAIR, account, address), Key(ADDRESS, address=address)]
    age = now - held.get(Key(KNOWN, account, address)).last
    if not 0 <= age <= KNOWN_FOR:
        keys.append(Key(ACCOUNT, account))
    return keys


def begin(account: str, address: str) -> int:
    """Count a try before its password is looked at, so that tries side by side count as well.

    0: go on. Else whole seconds to wait: refused, and not counted.
    """
    now, place = time.time(), network(address)
    with counters().held() as held:
        keys = _keys(held, account, place, now)
        waits = [PATIENCE[key.kind].wait(held.get(key), now) for key in keys]
        if max(waits) > 0:
            return math.ceil(max(waits))
        for key in keys:
            before = PATIENCE[key.kind].present(held.get(key), now)
            held.put(key, Count(before.number + 1, now))
    return 0


def succeeded(account: str, address: str) -> None:
    """The try that `begin` counted was right: forget the person's own failures, take back what it cost the others."""
    now, place = time.time(), network(address)
    with counters().held() as held:
        for key in _keys(held, account, place, now):
            before = held.get(key)
            left = 0 if key.kind == PAIR else max(0, before.number - 1)
            held.put(key, Count(left, before.last if left else 0.0))
        held.put(Key(KNOWN, account, place), Count(1, now))


def forget(account: str = "", address: str = "") -> int:
    """Lift all waits, or those of an account, of an address; with both the address becomes one that is known. How many counts went."""
    place = network(address) if address else ""
    kinds = {PAIR, ADDRESS, ACCOUNT, BEARER}
    with counters().held() as held:
        if account and place:
            gone = sum(
                held.clear({key.kind}, key.account, key.address)
                for key in (
                    Key(PAIR, account, place),
                    Key(ADDRESS, address=place),
                    Key(ACCOUNT, account),
                )
            )
            held.put(Key(KNOWN, account, place), Count(1, time.time()))
            return gone
        return held.clear(kinds, account, place)


def token_failed(address: str) -> float:
    """Count a wrong bearer token; seconds that the answer should take."""
    now, key = time.time(), Key(BEARER, address=network(address))
    with counters().held() as held:
        before = TOKENS.present(held.get(key), now)
        count = Count(before.number + 1, now)
        held.put(key, count)
    return TOKENS.wait(count, now)


def may_write(address: str) -> bool:
    """Whether a refusal gets an audit line of its own; else it is counted for `take_unwritten`."""
    now = time.time()
    limits = (
        (Key(LINES, address=network(address)), LINES_EACH),
        (Key(ALL_LINES), LINES_ALL),
    )
    with counters().held() as held:
        counts = [_this_minute(held.get(key), now) for key, _limit in limits]
        if any(
            count.number >= limit
            for count, (_key, limit) in zip(counts, limits, strict=True)
        ):
            key = Key(UNWRITTEN)
            held.put(key, Count(held.get(key).number + 1, now))
            return False
        for count, (key, _limit) in zip(counts, limits, strict=True):
            held.put(key, Count(count.number + 1, count.last))
    return True


def _this_minute(count: Count, now: float) -> Count:
    return count if 0 <= now - count.last < MINUTE else Count(0, now)


def take_unwritten() -> int:
    """How many refusals have no line yet; they count as written now."""
    with counters().held() as held:
        found = held.get(Key(UNWRITTEN)).number
        if found:
            held.put(Key(UNWRITTEN), Count())
    return found
