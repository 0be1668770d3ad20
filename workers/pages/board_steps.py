"""What can be done with the chosen: for each its form, the listing of what will happen, and the job that does it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from django.forms import Form
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext as _n

from agents.masters import MastersOffer, masters_offered
from ipxeready.actors import Actor
from ipxeready.errors import ApplicationError
from ipxeready.jobs.services import Work
from ipxeready.web.words import in_words, refuse
from workers import planning, selectors
from workers.batch_jobs import accesses_work, boots_work, resets_work
from workers.batches import batch_spec
from workers.choices import DiskType
from workers.goes import what_goes
from workers.inuse import session_words
from workers.jobs import deletion_work, disks_work
from workers.models import Disk
from workers.pages.board_forms import (
    AccessesForm,
    BootsForm,
    DisksForm,
    RemovalsForm,
    ResetsForm,
)

Chosen = Mapping[str, str]


@dataclass(frozen=True)
class Row:
    """One worker of a listing; each cell is some lines."""

    worker_id: str
    cells: list[list[str]]
    bad: bool = False


@dataclass
class Listing:
    """What will happen: first in numbers, then by worker."""

    columns: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    ready: bool = True
    """Whether it may begin."""


F = TypeVar("F", bound=Form)


class Step(ABC, Generic[F]):
    """One thing that can be done."""

    title: ClassVar[Any]
    begin: ClassVar[Any]
    danger: ClassVar[bool] = False
    notes: ClassVar[tuple[Any, ...]] = ()
    form: ClassVar[Any]

    @abstractmethod
    def listing(self, actor: Actor, chosen: Chosen, form: F) -> Listing:
        """What will happen, for a form that is valid; what is refused as a whole is added to the form's errors."""

    @abstractmethod
    def work(self, actor: Actor, chosen: Chosen, form: F) -> Work:
        """The job."""


class Disks(Step[DisksForm]):
    """A disk for each."""

    title = _("Disks for the chosen workers")
    begin = _("Make the disks")
    notes = (_("A disk that is made also becomes what its worker boots."),)
    form = DisksForm

    def listing(self, actor: Actor, chosen: Chosen, form: DisksForm) -> Listing:
        """Who gets one and where, who is skipped, who is refused and why."""
        what = form.what()
        unnamed = what["type"] == DiskType.MASTER and not what["name"]
        if unnamed:
            offer = masters_offered(actor=actor, nodes=_nodes(chosen))
            offered(form, offer)
            return Listing(
                facts=[_t("choose the master"), *offer_words(offer)], ready=False
            )
        try:
            spec = batch_spec(**what)
        except ApplicationError as error:
            refuse(form, error)
            return Listing(ready=False)
        plan = planning.plan_disks(actor=actor, spec=spec, chosen=chosen)
        if plan.offer is not None:
            offered(form, plan.offer, chosen=what["name"])
        if plan.problem is not None:
            refuse(form, plan.problem)
        made = plan.number(planning.MAKE)
        return Listing(
            columns=[_t("Node"), _t("What happens")],
            facts=[
                _n("%(n)s disk is made", "%(n)s disks are made", made) % {"n": made},
                *on_words(plan.by_node()),
                *skip_words(plan.number(planning.SKIP)),
                *_refused_words(plan.number(planning.REFUSE)),
                *(offer_words(plan.offer) if plan.offer else ()),
            ],
            rows=[
                Row(
                    step.worker_id,
                    [[step.node or "-"], [_fate(step, spec.os)]],
                    bad=step.fate == planning.REFUSE,
                )
                for step in plan.steps
            ],
            ready=plan.problem is None and made > 0,
        )

    def work(self, actor: Actor, chosen: Chosen, form: DisksForm) -> Work:
        """The batch."""
        what = form.what()
        spec = batch_spec(**what)
        plan = planning.plan_disks(actor=actor, spec=spec, chosen=chosen)
        if plan.problem is not None:
            raise plan.problem
        return disks_work(actor=actor, targets=plan.targets(), **what)


class Removals(Step[RemovalsForm]):
    """Deletion with all that belongs to them."""

    title = _("Delete the chosen workers")
    begin = _("Delete the workers")
    danger = True
    form = RemovalsForm

    def listing(self, actor: Actor, chosen: Chosen, form: RemovalsForm) -> Listing:
        """What goes with each and what stays, and who is connected."""
        options = form.cleaned_data
        found = selectors.workers_of(sorted(chosen))
        entries = what_goes(found, delete_file=options["delete_disk"])
        rows = [_removal(entry, force=options["force"]) for entry in entries]
        known = {entry["worker_id"] for entry in entries}
        rows += [
            Row(name, [[], [_t("there is no such worker")]], bad=True)
            for name in sorted(set(chosen) - known)
        ]
        going = sum(bool(row.cells[0]) for row in rows)
        images = sum(
            len(entry["disks"])
            for entry in entries
            if options["delete_disk"] and not (_users(entry) and not options["force"])
        )
        used = sum(bool(_users(entry)) for entry in entries)
        facts = [_n("%(n)s worker goes", "%(n)s workers go", going) % {"n": going}]
        if images:
            text = _n(
                "%(n)s image is deleted for good",
                "%(n)s images are deleted for good",
                images,
            )
            facts.append(text % {"n": images})
        if used and options["force"]:
            text = _n(
                "%(n)s is in use and is cut off", "%(n)s are in use and are cut off", used
            )  # fmt: skip
            facts.append(text % {"n": used})
        elif used:
            text = _n("%(n)s is in use and stays", "%(n)s are in use and stay", used)
            facts.append(text % {"n": used})
        return Listing(
            columns=[_t("Goes"), _t("Stays")], facts=facts, rows=rows, ready=going > 0
        )

    def work(self, actor: Actor, chosen: Chosen, form: RemovalsForm) -> Work:
        """The batch; those that are in use are refused by it, and told of in its result."""
        return deletion_work(
            actor=actor, worker_ids=sorted(chosen), **form.cleaned_data
        )


class Boots(Step[BootsForm]):
    """What they boot."""

    title = _("What the chosen workers boot")
    begin = _("Set it")
    notes = (_("A worker without a disk of the system is refused and stays as it is."),)
    form = BootsForm

    def listing(self, actor: Actor, chosen: Chosen, form: BootsForm) -> Listing:
        """What each boots now."""
        boot = form.boot()
        rows = [
            Row(
                worker.worker_id,
                [
                    [worker.default_os or "-"],
                    [worker.menu_default or "-"],
                    ["-" if worker.menu_timeout is None else str(worker.menu_timeout)],
                ],
            )
            for worker in selectors.workers_of(sorted(chosen))
        ]
        return Listing(
            columns=[
                _t("Default system now"),
                _t("Menu default now"),
                _t("Menu timeout now"),
            ],
            facts=_boot_words(boot),
            rows=rows,
            ready=bool(boot),
        )

    def work(self, actor: Actor, chosen: Chosen, form: BootsForm) -> Work:
        """The batch."""
        return boots_work(actor=actor, worker_ids=sorted(chosen), **form.boot())


class Resets(Step[ResetsForm]):
    """Their disks back to the master."""

    title = _("Reset the disks of the chosen workers")
    begin = _("Reset the disks")
    danger = True
    notes = (
        _("All that was written to these disks is lost. One that is in use is refused."),
        _("Each has its master's size afterwards, also where it was grown."),
    )  # fmt: skip
    form = ResetsForm

    def listing(self, actor: Actor, chosen: Chosen, form: ResetsForm) -> Listing:
        """Which disks, and from which master each comes."""
        system = form.cleaned_data["os"]
        things = selectors.things_of(sorted(chosen))
        rows, count = [], 0
        for name in sorted(chosen):
            disk = next(
                (
                    thing
                    for thing in things.get(name, [])
                    if isinstance(thing, Disk) and thing.os == system
                ),
                None,
            )
            if disk is None:
                words = _t("has no such disk: is refused")
                rows.append(Row(name, [[], [words]], bad=True))
                continue
            count += 1
            master = form.cleaned_data["master"] or disk.source.get("name") or "-"
            rows.append(Row(name, [[disk.agent], [str(master)]]))
        text = _n("%(n)s disk is reset", "%(n)s disks are reset", count)
        return Listing(
            columns=[_t("Node"), _t("Master")],
            facts=[text % {"n": count}],
            rows=rows,
            ready=count > 0,
        )

    def work(self, actor: Actor, chosen: Chosen, form: ResetsForm) -> Work:
        """The batch."""
        data = form.cleaned_data
        return resets_work(
            actor=actor,
            worker_ids=sorted(chosen),
            os=data["os"],
            master=data["master"] or None,
        )


class Accesses(Step[AccessesForm]):
    """Who may log in to their targets."""

    title = _("Access to the targets of the chosen workers")
    begin = _("Set the access")
    notes = (_("A machine that is connected stays connected."),)
    form = AccessesForm

    def listing(self, actor: Actor, chosen: Chosen, form: AccessesForm) -> Listing:
        """What holds for each now."""
        names = sorted(chosen)
        things = selectors.things_of(names)
        rows = [
            Row(
                worker.worker_id,
                [
                    [worker.get_access_display() or _t("as its nodes say")],
                    [
                        f"{thing.iqn}: {thing.access}"
                        for thing in things.get(worker.pk, [])
                    ],
                ],
            )
            for worker in selectors.workers_of(names)
        ]
        number = sum(len(found) for found in things.values())
        text = _n("%(n)s target is set", "%(n)s targets are set", number)
        return Listing(
            columns=[_t("Access now"), _t("Targets now")],
            facts=[text % {"n": number}],
            rows=rows,
            ready=bool(rows),
        )

    def work(self, actor: Actor, chosen: Chosen, form: AccessesForm) -> Work:
        """The batch."""
        data = form.cleaned_data
        return accesses_work(
            actor=actor,
            worker_ids=sorted(chosen),
            access=data["access"] or None,
            force=data["force"],
        )


STEPS: dict[str, Step[Any]] = {
    "disks": Disks(),
    "boot": Boots(),
    "reset": Resets(),
    "access": Accesses(),
    "delete": Removals(),
}


# --- words -------------------------------------------------------------------


def facts(count: planning.Count) -> list[str]:
    """A choice in numbers, for people."""
    text = _n("%(n)s chosen", "%(n)s chosen", count.chosen) % {"n": count.chosen}
    return [text, *on_words(count.on), *skip_words(count.present)]


def on_words(by_node: Mapping[str, int]) -> list[str]:
    """How many on which node."""
    found = []
    for node, number in sorted(by_node.items()):
        told = {"n": number, "node": node}
        if node:
            found.append(_n("%(n)s on %(node)s", "%(n)s on %(node)s", number) % told)
        else:
            text = _n("%(n)s on any node", "%(n)s on any node", number)
            found.append(text % told)
    return found


def skip_words(number: int) -> list[str]:
    """How many are skipped, if any."""
    if not number:
        return []
    text = _n(
        "%(n)s has such a disk already and will be skipped",
        "%(n)s have such a disk already and will be skipped",
        number,
    )
    return [text % {"n": number}]


def _refused_words(number: int) -> list[str]:
    if not number:
        return []
    text = _n("%(n)s will be refused", "%(n)s will be refused", number)
    return [text % {"n": number}]


def offered(form: DisksForm, offer: MastersOffer, chosen: str | None = None) -> None:
    """Let the form choose among what is offered; what was sent stays visible beside its refusal."""
    masters = dict(offer.masters)
    if chosen and chosen not in masters:
        masters[chosen] = 0
    form.offer(masters, "-")


def offer_words(offer: MastersOffer) -> list[str]:
    """Why masters are missing from an offer."""
    found = [
        _t("node %(node)s does not say what masters it has: %(why)s")
        % {"node": node, "why": in_words(why)}
        for node, why in offer.silent.items()
    ]
    found += [
        _t("%(master)s is not offered: it is not on %(nodes)s")
        % {"master": master, "nodes": ", ".join(nodes)}
        for master, nodes in offer.lacking.items()
    ]
    found += [
        _t("%(master)s is not offered: %(why)s")
        % {"master": master, "why": in_words(why)}
        for master, why in offer.unusable.items()
    ]
    if not offer.masters and not found:
        found.append(
            _t("there is no master on these nodes; upload one on a node's page")
        )
    return found


def _nodes(chosen: Chosen) -> list[str]:
    return sorted({node for node in chosen.values() if node})


def _fate(step: planning.Step, system: str) -> str:
    if step.fate == planning.MAKE:
        return _t("new %(os)s disk") % {"os": system}
    if step.fate == planning.SKIP:
        told = {"os": system, "node": step.node}
        return _t("skipped: has a %(os)s disk already, on %(node)s") % told
    return _t("refused: %(why)s") % {"why": in_words(step.why)}


def _users(entry: dict[str, Any]) -> list[str]:
    """Who is connected to a worker's targets."""
    things = [*entry["disks"], *([entry["cd"]] if entry["cd"] else [])]
    return [
        session_words(session)
        for thing in things
        for session in thing.get("sessions", [])
    ]


def _removal(entry: dict[str, Any], *, force: bool) -> Row:
    """One worker of a deletion."""
    users = _users(entry)
    goes = [_t("the record, with hostname %(name)s") % {"name": entry["hostname"]}]
    stays = []
    for binding in entry["bindings"]:
        words = [binding["mac"], binding.get("ip", ""), *binding.get("tags", [])]
        goes.append(
            _t("the binding %(words)s") % {"words": " ".join(filter(None, words))}
        )
    for disk in entry["disks"]:
        told: dict[str, str] = {
            "os": disk["os"],
            "node": disk["agent"],
            "image": disk["image"],
        }
        if disk["image_deleted"]:
            goes.append(_t("the %(os)s disk on %(node)s with its image %(image)s") % told)  # fmt: skip
        else:
            goes.append(_t("the %(os)s disk on %(node)s") % told)
            stays.append(_t("the image %(image)s on %(node)s") % told)
    if entry["cd"]:
        told = {"iso": entry["cd"]["iso"], "node": entry["cd"]["agent"]}
        goes.append(_t("the install CD on %(node)s") % told)
        stays.append(_t("the ISO %(iso)s on %(node)s") % told)
    if not users:
        return Row(entry["worker_id"], [goes, stays])
    who = {"who": "; ".join(users)}
    if force:
        goes.append(_t("CUT OFF: %(who)s") % who)
        return Row(entry["worker_id"], [goes, stays], bad=True)
    all_of_it = _t("all of it: in use by %(who)s") % who
    return Row(entry["worker_id"], [[], [all_of_it]], bad=True)


def _boot_words(boot: dict[str, Any]) -> list[str]:
    names = {
        "os": _t("default system: %(value)s"),
        "menu_default": _t("menu default: %(value)s"),
        "menu_timeout": _t("menu timeout: %(value)s"),
    }
    if not boot:
        return [_t("nothing is changed yet")]
    none = _t("none")
    return [
        names[key] % {"value": none if value is None else value}
        for key, value in boot.items()
    ]
