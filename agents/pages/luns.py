"""A node's targets, worked on directly: new disks and CDs, deletion, access, a scan."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _

from agents import jobs, lun_access, nodes
from agents.forms import (
    EMPTY,
    CdForm,
    ConfirmForm,
    DiskForm,
    LunAccessForm,
    LunDeleteForm,
)
from agents.models import Agent
from agents.overview import choices_of, target_of
from agents.pages.common import (
    WORK_PATIENCE,
    back_to,
    find,
    followed,
    question,
    refuse,
    worker_address,
)
from agents.protocol.answers import Master, Target
from agents.protocol.systems import CD
from agents.services import owners_on
from agents.together import patience
from ipxeready.errors import ApplicationError
from ipxeready.jobs.services import job_start, job_wait
from ipxeready.storage.iqn import join
from ipxeready.storage.jobs import Job
from ipxeready.web.actors import actor_of
from ipxeready.web.words import in_words


def disk_add(request: HttpRequest, agent_id: str) -> HttpResponse:
    """A disk of nobody's: empty, or a clone of one of the node's masters."""
    agent = find(agent_id)
    actor = actor_of(request)
    title = _("New disk on %(node)s") % {"node": agent.id}
    submit = _("Make the disk")
    base, why = settings.IPXE.iqn_base, ""
    masters: list[Master] = []
    try:
        able, masters, _isos = choices_of(
            actor=actor, agent_id=agent.id, timeout=patience()
        )
        base = able["base_iqn"]
    except ApplicationError as error:
        why = in_words(nodes.words_of(error))
    if why:
        return question(
            request, agent, title=title, form=None, submit=submit, why=why, failed=True
        )
    form = DiskForm(request.POST or None, masters=masters)
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        empty = data["source"] == EMPTY
        try:
            work = jobs.disk_work(
                actor=actor,
                agent_id=agent.id,
                iqn=_iqn(base, data["name"]),
                master=None if empty else data["master"],
                size=data["size"] if empty else None,
            )
            return followed(request, agent, work, _disk_made)
        except ApplicationError as error:
            if error.field == "iqn":
                form.add_error("name", in_words(error))
            else:
                refuse(form, error)
    return question(
        request,
        agent,
        title=title,
        form=form,
        submit=submit,
        notes=[
            _("A worker gets its disk on the worker's own page; this one belongs to nobody.")
        ],
    )  # fmt: skip


def _iqn(base: str, name: str) -> str:
    """A whole IQN as it is, anything else as the last part of one."""
    return name if ":" in name else join(base, name)


def _disk_made(job: Job) -> str:
    result = job.result if isinstance(job.result, dict) else {}
    return _("The disk %(iqn)s is there.") % {"iqn": result.get("iqn", "")}


def cd_add(request: HttpRequest, agent_id: str) -> HttpResponse:
    """One of the node's ISOs as a CD."""
    agent = find(agent_id)
    actor = actor_of(request)
    title = _("New CD on %(node)s") % {"node": agent.id}
    submit = _("Put it in")
    why, failed = "", False
    isos: list[str] = []
    base = settings.IPXE.iqn_base
    try:
        able, _masters, isos = choices_of(
            actor=actor, agent_id=agent.id, timeout=patience()
        )
        base = able["base_iqn"]
        if not able["cd"]:
            why = _("The target system of this node, %(name)s, has no CD drives.") % {
                "name": able["backend"]
            }
        elif not isos:
            why = _("There is no ISO in the image directory of this node: upload one on its page of images.")  # fmt: skip
    except ApplicationError as error:
        why, failed = in_words(nodes.words_of(error)), True
    if why:
        return question(
            request,
            agent,
            title=title,
            form=None,
            submit=submit,
            why=why,
            failed=failed,
        )
    form = CdForm(request.POST or None, isos=isos)
    if request.method == "POST" and form.is_valid():
        name = form.cleaned_data["name"]
        try:
            made = nodes.lun_create_cd(
                actor=actor,
                agent_id=agent.id,
                iso=form.cleaned_data["iso"],
                iqn=_iqn(base, name) if name else None,
            )
        except ApplicationError as error:
            if error.field == "iqn":
                form.add_error("name", in_words(error))
            else:
                refuse(form, error)
        else:
            text = _("The CD %(iqn)s is there.") % {"iqn": made["iqn"]}
            messages.success(request, text)
            return back_to(agent)
    return question(request, agent, title=title, form=form, submit=submit)


def delete(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Take a target off, with its image if asked; whom it cuts off stands there before. A worker's disk is deleted there."""
    agent = find(agent_id)
    actor = actor_of(request)
    iqn = request.GET.get("iqn", "")
    title = _("Delete a target of %(node)s") % {"node": agent.id}
    submit = _("Delete the target")
    target, answer = _target(request, agent, iqn, title, submit)
    if target is None:
        return answer
    cd = any(_is_cd(lun) for lun in target["luns"])
    form = LunDeleteForm(request.POST if request.method == "POST" else None, cd=cd)
    status = 200
    if request.method == "POST" and form.is_valid():
        try:
            done = nodes.lun_delete(actor=actor, agent_id=agent.id, iqn=iqn, **form.cleaned_data)  # fmt: skip
        except ApplicationError as error:
            refuse(form, error)
            status = error.status
        else:
            words = _("The target %(iqn)s was deleted.")
            if done["delete_file"]:
                words = _("The target %(iqn)s and its image were deleted.")
            messages.success(request, words % {"iqn": iqn})
            return back_to(agent)
    backing = [str(lun.get("backing") or "") for lun in target["luns"] if isinstance(lun, dict)]  # fmt: skip
    return question(
        request,
        agent,
        title=title,
        form=form,
        submit=submit,
        danger=True,
        status=status,
        goes=[
            _("the target %(iqn)s") % {"iqn": iqn},
            *(
                []
                if cd
                else [_("its image %(file)s, only if you tick it below") % {"file": file} for file in backing]
            ),
        ],
        stays=[_("the ISO %(file)s") % {"file": file} for file in backing] if cd else [],
        cut_off=_connected(target),
    )  # fmt: skip


def access(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Who may log in to a target that is nobody's; a worker's follows the worker's word."""
    agent = find(agent_id)
    iqn = request.GET.get("iqn", "")
    title = _("Access to a target of %(node)s") % {"node": agent.id}
    submit = _("Set the access")
    target, answer = _target(request, agent, iqn, title, submit)
    if target is None:
        return answer
    now = target.get("access")
    form = LunAccessForm(request.POST or None, initial={"access": now})
    status = 200
    if request.method == "POST" and form.is_valid():
        try:
            lun_access.lun_access_set(
                actor=actor_of(request),
                agent_id=agent.id,
                iqn=iqn,
                **form.cleaned_data,
            )
        except ApplicationError as error:
            refuse(form, error)
            status = error.status
        else:
            messages.success(request, _("The access was set."))
            return back_to(agent)
    return question(
        request,
        agent,
        title=title,
        form=form,
        submit=submit,
        status=status,
        facts=[(_("Target"), iqn), (_("Access now"), str(now or "?"))],
        facts_title=_("Target"),
    )


def _target(
    request: HttpRequest, agent: Agent, iqn: str, title: str, submit: str
) -> tuple[Target | None, HttpResponse]:
    """A target that may be worked on here, or the page that says why it may not."""
    why, failed, links = "", False, []
    target = None
    try:
        target = target_of(
            actor=actor_of(request), agent_id=agent.id, iqn=iqn, timeout=patience()
        )
    except ApplicationError as error:
        why, failed = in_words(nodes.words_of(error)), True
    owners = owners_on(agent.id, [iqn]).get(iqn, [])
    if owners:
        why = _("%(iqn)s is the disk or CD of a worker: it is deleted, and its access set, on the worker's page, which mends the record too.") % {"iqn": iqn}  # fmt: skip
        links = [(worker_address(name), name) for name in owners]
    elif target is None and not why:
        why = _("The node has no target %(iqn)s any more.") % {"iqn": iqn}
    if not why:
        return target, HttpResponse()
    status = 200 if owners or failed else 404
    return None, question(
        request,
        agent,
        title=title,
        form=None,
        submit=submit,
        why=why,
        failed=failed,
        links=links,
        status=status,
    )


def _is_cd(lun: object) -> bool:
    return isinstance(lun, dict) and lun.get("type") == CD


def _connected(target: Target) -> list[str]:
    """Who is connected, in words."""
    lines = []
    for session in target["sessions"]:
        if not isinstance(session, dict):
            continue
        told = {
            "initiator": session.get("initiator") or "?",
            "address": session.get("address") or "?",
            "since": session.get("since") or "?",
        }
        lines.append(_("%(initiator)s at %(address)s, since %(since)s") % told)
    return lines


def scan(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Export what has no target; what was made and what was left alone stands on the job's page."""
    agent = find(agent_id)
    if request.method == "POST":
        actor = actor_of(request)
        try:
            work = jobs.scan_work(actor=actor, agent_id=agent.id)
            job = job_wait(job_start(actor=actor, work=work).id, WORK_PATIENCE)
        except ApplicationError as error:
            messages.error(request, in_words(error))
            return back_to(agent)
        return HttpResponseRedirect(reverse("admin:job", args=[job.id]))
    return question(
        request,
        agent,
        title=_("Scan the images of %(node)s") % {"node": agent.id},
        form=ConfirmForm(),
        submit=_("Scan"),
        notes=[
            _("Every image without a target is exported, and wrong rules of access are put right. Masters are never exported, targets that were taken off on purpose stay off, nobody is cut off.")
        ],
    )  # fmt: skip
