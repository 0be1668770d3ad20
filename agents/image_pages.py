"""The pages of a node's images: what lies there, upload, conversion, deletion. They work without JavaScript."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.views.decorators.csrf import csrf_exempt

from agents import intake, intake_jobs, protocol, selectors
from agents.formupload import NodeUploadHandler
from agents.image_forms import ConvertForm, ImageDeleteForm, UploadForm
from agents.models import Agent
from agents.protocol import ImageFile
from agents.services import OWNERS
from ipxeready.actors import ADMINISTRATOR, OPERATOR, Actor
from ipxeready.errors import ApplicationError, Invalid
from ipxeready.jobs.services import Work, job_start, job_wait, refusal_of
from ipxeready.storage.jobs import DONE, ENDED, Job
from ipxeready.storage.sizes import format_size
from ipxeready.web.actors import actor_of

if TYPE_CHECKING:
    from agents.admin import AgentAdmin

#: Seconds that a page waits for work; what takes longer is followed on its job's page.
PATIENCE = 3.0
#: What a form with a file must prove before a byte of it is read (Django's own proof lies behind the file).
_SALT = "agents.image_pages.upload"
_TOKEN_AGE = 12 * 3600
_KINDS: dict[str, Any] = {
    protocol.KIND_DISK: _("disk"),
    protocol.KIND_MASTER: _("master"),
    protocol.KIND_ISO: _("ISO"),
    protocol.KIND_SOURCE: _("to be converted"),
    protocol.KIND_OTHER: _("other"),
}


def image_urls(admin: AgentAdmin) -> list[URLPattern]:
    """The addresses of these pages below a node's."""
    view = admin.admin_site.admin_view
    # csrf_exempt: its own proof is in the address, see `_proof`.
    send = csrf_exempt(partial(_upload, admin))
    return [
        path(f"<path:agent_id>/images/{route}", view(function), name=name)
        for route, function, name in (
            ("", partial(_list, admin), "agents_agent_images"),
            ("delete/", partial(_delete, admin), "agents_agent_image_delete"),
            ("convert/", partial(_convert, admin), "agents_agent_image_convert"),
            ("upload/", send, "agents_agent_image_upload"),
            (
                "uploads/<str:upload_id>/delete/",
                partial(_give_up, admin),
                "agents_agent_upload_delete",
            ),
        )
    ]


def _list(admin: AgentAdmin, request: HttpRequest, agent_id: str) -> HttpResponse:
    agent = _agent(admin, request, agent_id)
    return _page(admin, request, agent)


def _page(
    admin: AgentAdmin,
    request: HttpRequest,
    agent: Agent,
    *,
    convert: ConvertForm | None = None,
    upload: UploadForm | None = None,
) -> HttpResponse:
    """The list and the forms; a node that does not answer is said in the place of the list."""
    actor = actor_of(request)
    images: list[ImageFile] = []
    uploads: list[dict[str, Any]] = []
    error, formats = "", []
    try:
        found = intake.image_list(actor=actor, agent_id=agent.id)
        images, formats = found["images"], found["formats"]
        uploads = [
            {
                **each,
                "there": format_size(each["offset"]),
                "of": format_size(each["size"]) if each["size"] else "",
            }
            for each in intake.upload_list(actor=actor, agent_id=agent.id)
        ]
    except ApplicationError as caught:
        error = caught.message
    sources = [
        image["name"]
        for image in images
        if image["kind"] == protocol.KIND_SOURCE
        or (
            (image["kind"] != protocol.KIND_ISO and "target" not in image)
            and image["name"].lower().endswith(protocol.UPLOAD_SUFFIXES)
        )
    ]
    # Those that are nothing else come first.
    sources.sort(key=lambda name: protocol.kind_of(name) != protocol.KIND_SOURCE)
    return _rendered(
        admin,
        request,
        agent,
        "agents/images.html",
        _t("Images of %(node)s") % {"node": agent.id},
        images=[_row(agent, image, actor) for image in images],
        uploads=uploads,
        node_error=error,
        may_change=actor.may(OPERATOR),
        upload_form=upload or UploadForm(),
        convert_form=convert or ConvertForm(sources=sources),
        can_convert=bool(formats),
        sources=sources,
        proof=_proof(request, agent),
        api=f"/agents/{agent.id}/uploads",
    )


def _row(agent: Agent, image: ImageFile, actor: Actor) -> dict[str, Any]:
    """One file as the page shows it."""
    target = image.get("target", "")
    owners: list[str] = []
    if target:
        owners = sorted({owner for ask in OWNERS for owner in ask(agent.id, target)})
    master = image["kind"] == protocol.KIND_MASTER
    return {
        "name": image["name"],
        "kind": _KINDS.get(image["kind"], image["kind"]),
        "size": format_size(image["size"]),
        "allocated": format_size(image["allocated"]),
        "changed": _time(image["mtime"]),
        "target": target,
        "owners": owners,
        "problem": image.get("problem", ""),
        "may_delete": not target and actor.may(ADMINISTRATOR if master else OPERATOR),
    }


def _convert(admin: AgentAdmin, request: HttpRequest, agent_id: str) -> HttpResponse:
    agent = _agent(admin, request, agent_id, OPERATOR)
    if request.method != "POST":
        return _back(agent)
    source = request.POST.get("convert-source", "")
    form = ConvertForm(request.POST, sources=[source])
    if form.is_valid():
        actor = actor_of(request)
        try:
            work = intake_jobs.convert_work(
                actor=actor, agent_id=agent.id, **form.cleaned_data
            )
            return _followed(admin, request, agent, work)
        except ApplicationError as error:
            field = error.field if error.field in form.fields else None
            form.add_error(field, error.message)
    return _page(admin, request, agent, convert=form)


def _upload(admin: AgentAdmin, request: HttpRequest, agent_id: str) -> HttpResponseBase:
    """A plain form with a file, which goes to the node while it comes."""
    agent = _agent(admin, request, agent_id, OPERATOR)
    if request.method != "POST":
        return _back(agent)
    if not _proven(request, agent):
        message = _t("the form has expired: reload the page and send it again")
        admin.message_user(request, message, messages.ERROR)
        return _back(agent)
    actor = actor_of(request)
    handler = NodeUploadHandler(request, actor, agent.id)
    request.upload_handlers = [handler]
    form = UploadForm(request.POST)
    try:
        if handler.error is not None:
            raise handler.error
        if not handler.upload_id:
            raise Invalid(_t("choose a file"), field="file")
        name = request.POST.get("upload-name", "").strip() or handler.sent_name
        work = intake_jobs.finish_work(
            actor=actor,
            agent_id=agent.id,
            upload_id=handler.upload_id,
            name=name,
            sha256=request.POST.get("upload-sha256", "").strip() or None,
        )
        return _followed(admin, request, agent, work, gives_up=handler)
    except ApplicationError as error:
        handler.give_up()
        form.is_valid()
        form.errors.clear()
        form.add_error(
            error.field if error.field in form.fields else None, error.message
        )
    return _page(admin, request, agent, upload=form)


def _followed(
    admin: AgentAdmin,
    request: HttpRequest,
    agent: Agent,
    work: Work,
    *,
    gives_up: NodeUploadHandler | None = None,
) -> HttpResponse:
    """Wait a moment for the work, else lead to its job; a refusal is raised."""
    job = job_wait(job_start(actor=actor_of(request), work=work).id, PATIENCE)
    if job.state not in ENDED:
        return HttpResponseRedirect(reverse("admin:job", args=[job.id]))
    if job.state != DONE:
        if gives_up is not None:
            gives_up.give_up()
        field, words = refusal_of(job)
        raise Invalid(words, field=field)
    admin.message_user(request, _done(job), messages.SUCCESS)
    return _back(agent)


def _done(job: Job) -> str:
    """What became of it, in words."""
    result = job.result if isinstance(job.result, dict) else {}
    told = {
        "name": result.get("name", ""),
        "size": format_size(int(result.get("size") or 0)),
        "sha256": result.get("sha256", ""),
    }
    if told["sha256"]:
        return _t("The file %(name)s is there: %(size)s, SHA-256 %(sha256)s") % told
    return _t("The file %(name)s is there: %(size)s") % told


def _delete(admin: AgentAdmin, request: HttpRequest, agent_id: str) -> HttpResponse:
    agent = _agent(admin, request, agent_id, OPERATOR)
    actor = actor_of(request)
    name = request.GET.get("name", "")
    try:
        found = intake.image_list(actor=actor, agent_id=agent.id)["images"]
    except ApplicationError as error:
        admin.message_user(request, error.message, messages.ERROR)
        return _back(agent)
    image = next((each for each in found if each["name"] == name), None)
    if image is None:
        raise Http404
    master = image["kind"] == protocol.KIND_MASTER
    form = ImageDeleteForm(request.POST or None, is_master=master)
    # Without a field of its own an empty form is never bound.
    sent = request.method == "POST" and (not master or form.is_valid())
    refusal = ""
    if sent:
        try:
            intake.image_delete(
                actor=actor, agent_id=agent.id, name=name, master=master
            )
        except ApplicationError as error:
            refusal = error.message
        else:
            text = _t("The file %(name)s was deleted.") % {"name": name}
            admin.message_user(request, text, messages.SUCCESS)
            return _back(agent)
    return _rendered(
        admin,
        request,
        agent,
        "agents/image_delete.html",
        _t("Delete %(name)s") % {"name": name},
        form=form,
        refusal=refusal,
        goes=[
            _t("the file %(name)s on node %(node)s (%(size)s, of which %(taken)s are on the disk)")
            % {
                "name": name,
                "node": agent.id,
                "size": format_size(image["size"]),
                "taken": format_size(image["allocated"]),
            }
        ],
    )  # fmt: skip


def _give_up(
    admin: AgentAdmin, request: HttpRequest, agent_id: str, upload_id: str
) -> HttpResponse:
    agent = _agent(admin, request, agent_id, OPERATOR)
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    try:
        intake.upload_delete(
            actor=actor_of(request), agent_id=agent.id, upload_id=upload_id
        )
    except ApplicationError as error:
        admin.message_user(request, error.message, messages.ERROR)
    else:
        text = _t("The unfinished upload was deleted.")
        admin.message_user(request, text, messages.SUCCESS)
    return _back(agent)


def _agent(
    admin: AgentAdmin, request: HttpRequest, agent_id: str, role: str | None = None
) -> Agent:
    agent = selectors.agent_find(agent_id)
    if agent is None:
        raise Http404
    allowed = admin.has_view_permission(request, agent)
    if not allowed or (role is not None and not actor_of(request).may(role)):
        raise PermissionDenied
    return agent


def _rendered(
    admin: AgentAdmin,
    request: HttpRequest,
    agent: Agent,
    template: str,
    title: str,
    **context: Any,
) -> HttpResponse:
    shown = {
        **admin.admin_site.each_context(request),
        "opts": admin.opts,
        "agent": agent,
        "title": title,
        **context,
    }
    return TemplateResponse(request, template, shown)


def _back(agent: Agent) -> HttpResponseRedirect:
    return HttpResponseRedirect(reverse("admin:agents_agent_images", args=[agent.pk]))


def _proof(request: HttpRequest, agent: Agent) -> str:
    return signing.dumps([str(request.user.pk), agent.id], salt=_SALT)


def _proven(request: HttpRequest, agent: Agent) -> bool:
    try:
        found = signing.loads(
            request.GET.get("proof", ""), salt=_SALT, max_age=_TOKEN_AGE
        )
    except signing.BadSignature:
        return False
    return bool(found == [str(request.user.pk), agent.id])


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except (ValueError, TypeError):
        return None
