"""/boot-vars under load, beside an empty view and the naive way on the same server."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.bench import load
from tests.bench.data import boot_path
from tests.bench.processes import Server

PROCESSES = 2
CONNECTIONS = 4


@dataclass(frozen=True)
class Figures:
    """Answers a second, and milliseconds for half and for 99 of 100 answers."""

    rate: float
    p50: float
    p99: float


class WrongAnswer(Exception):
    """An answer under load that was not what it should be."""


def measure(
    product: Server,
    plain: Server,
    workers: int,
    *,
    requests: int,
    naive: int,
    rounds: int,
) -> dict[str, Figures]:
    """The best of some rounds, taken in turn: other work on the machine counts for nobody.

    By kind: `empty`, `again` (100 machines), `once` (each answer has to be made), `naive`.
    """
    numbers = list(range(1, workers + 1))
    random.Random(workers).shuffle(numbers)
    paths = [boot_path(number) for number in numbers]
    # As many machines at every size, so that the sizes can be compared.
    some = paths[:100]
    best: dict[str, Figures] = {}
    # Each machine once, in an order of chance: every answer has to be made.
    everybody = paths[:requests]
    _better(best, "once", _loaded(product, everybody, len(everybody), b"set base-iqn "))
    for _ in range(rounds):
        kinds = [
            ("empty", plain, ["/empty"], b""),
            ("again", product, some, b"set base-iqn "),
        ]
        for name, server, ask, holds in kinds:
            _better(best, name, _loaded(server, ask, requests, holds))
    best["naive"] = _loaded(plain, some, naive, b"set base-iqn ")
    return best


def _better(best: dict[str, Figures], name: str, new: Figures) -> None:
    if name not in best or new.rate > best[name].rate:
        best[name] = new


def _loaded(server: Server, paths: Sequence[str], number: int, holds: bytes) -> Figures:
    result = load.run(
        server.port,
        paths,
        number=number,
        processes=PROCESSES,
        connections=CONNECTIONS,
        holds=holds,
    )
    if result.wrong:
        raise WrongAnswer(result.wrong)
    return Figures(result.rate, result.percentile(0.5), result.percentile(0.99))
