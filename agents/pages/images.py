"""The pages of a node's images: what lies there, upload, conversion, deletion. They work without JavaScript."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core import signing
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
)
from django.urls import reverse
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.views.decorators.csrf import csrf_exempt

from agents import intake, intake_jobs
from agents.formupload import NodeUploadHandler
from agents.image_forms import ConvertForm, ImageDeleteForm, UploadForm
from agents.models import Agent
from agents.pages.common import (
    WORK_PATIENCE,
    address,
    find,
    moment,
    question,
    trail,
    worker_address,
)
from agents.protocol.answers import ImageFile
from agents.protocol.filenames import (
    KIND_DISK,
    KIND_ISO,
    KIND_MASTER,
    KIND_OTHER,
    KIND_SOURCE,
    UPLOAD_SUFFIXES,
    check_source,
    kind_of,
    passes,
)
from agents.services import owners_on
from agents.together import PATIENCE
from ipxeready.actors import ADMINISTRATOR, OPERATOR, Actor
from ipxeready.errors import ApplicationError, Invalid
from ipxeready.jobs.services import Work, job_start, job_wait, refusal_of
from ipxeready.storage.jobs import DONE, ENDED, Job
from ipxeready.storage.sizes import format_size
from ipxeready.web.actors import actor_of
from ipxeready.web.pages import page
from ipxeready.web.words import in_words, refuse

#: What a form with a file must prove before a byte of it is read (Django's own proof lies behind the file).
_SALT = "agents.pages.images.upload"
_TOKEN_AGE = 12 * 3600
_KINDS: dict[str, Any] = {
    KIND_DISK: _("disk"),
    KIND_MASTER: _("master"),
    KIND_ISO: _("ISO"),
    KIND_SOURCE: _("to be converted"),
    KIND_OTHER: _("other"),
}


def images(request: HttpRequest, agent_id: str) -> HttpResponse:
    """What lies in the image directory, with the forms for those who may use them."""
    return _page(request, find(agent_id))


def _page(
    request: HttpRequest,
    agent: Agent,
    *,
    convert_form: ConvertForm | None = None,
    upload_form: UploadForm | None = None,
) -> HttpResponse:
    """The list and the forms; a node that does not answer is said in the place of the list."""
    actor = actor_of(request)
    found: list[ImageFile] = []
    uploads: list[dict[str, Any]] = []
    error, formats = "", []
    try:
        told = intake.image_list(actor=actor, agent_id=agent.id, timeout=PATIENCE)
        found, formats = told["images"], told["formats"]
        uploads = [
            {
                **each,
                "there": format_size(each["offset"]),
                "of": format_size(each["size"]) if each["size"] else "",
            }
            for each in intake.upload_list(actor=actor, agent_id=agent.id)
        ]
    except ApplicationError as caught:
        error = in_words(caught)
    sources = [
        image["name"]
        for image in found
        if image["kind"] == KIND_SOURCE
        or (
            (image["kind"] != KIND_ISO and "target" not in image)
            and image["name"].lower().endswith(UPLOAD_SUFFIXES)
        )
    ]
    sources = [name for name in sources if passes(check_source, name)]
    # Those that are nothing else come first.
    sources.sort(key=lambda name: kind_of(name) != KIND_SOURCE)
    targets = [str(image["target"]) for image in found if image.get("target")]
    owners = owners_on(agent.id, targets)
    return _rendered(
        request,
        agent,
        "agents/images.html",
        _t("Images of %(node)s") % {"node": agent.id},
        images=[
            _row(agent, image, owners.get(str(image.get("target")), []), actor)
            for image in found
        ],
        uploads=uploads,
        node_error=error,
        may_change=actor.may(OPERATOR),
        upload_form=upload_form or UploadForm(),
        convert_form=convert_form or ConvertForm(sources=sources),
        can_convert=bool(formats),
        sources=sources,
        proof=_proof(request, agent),
        api=f"/agents/{agent.id}/uploads",
    )


def _row(
    agent: Agent, image: ImageFile, owners: list[str], actor: Actor
) -> dict[str, Any]:
    """One file as the page shows it."""
    target = image.get("target", "")
    master = image["kind"] == KIND_MASTER
    return {
        "name": image["name"],
        "delete": address("admin:agents_agent_image_delete", agent, name=image["name"]),
        "kind": _KINDS.get(image["kind"], image["kind"]),
        "size": image.get("size"),
        "allocated": image.get("allocated"),
        "changed": moment(image.get("mtime")),
        "target": target,
        "owners": [(name, worker_address(name)) for name in owners],
        "problem": image.get("problem", ""),
        "may_delete": not target and actor.may(ADMINISTRATOR if master else OPERATOR),
    }


def convert(request: HttpRequest, agent_id: str) -> HttpResponse:
    """An image from a file of another format."""
    agent = find(agent_id)
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
            return _followed(request, agent, work)
        except ApplicationError as error:
            refuse(form, error)
    return _page(request, agent, convert_form=form)


@csrf_exempt
def upload(request: HttpRequest, agent_id: str) -> HttpResponseBase:
    """A plain form with a file, which goes to the node while it comes. Its own proof is in the address, see `_proof`."""
    agent = find(agent_id)
    if request.method != "POST":
        return _back(agent)
    if not _proven(request, agent):
        message = _t("the form has expired: reload the page and send it again")
        messages.error(request, message)
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
        return _followed(request, agent, work, gives_up=handler)
    except ApplicationError as error:
        handler.give_up()
        form.is_valid()
        form.errors.clear()
        refuse(form, error)
    return _page(request, agent, upload_form=form)


def _followed(
    request: HttpRequest,
    agent: Agent,
    work: Work,
    *,
    gives_up: NodeUploadHandler | None = None,
) -> HttpResponse:
    """Wait a moment for the work, else lead to its job; a refusal is raised."""
    job = job_wait(job_start(actor=actor_of(request), work=work).id, WORK_PATIENCE)
    if job.state not in ENDED:
        return HttpResponseRedirect(reverse("admin:job", args=[job.id]))
    if job.state != DONE:
        if gives_up is not None:
            gives_up.give_up()
        field, words = refusal_of(job)
        raise Invalid(words, field=field)
    messages.success(request, _done(job))
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


def delete(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Ask before a file goes; a master wants to be called one."""
    agent = find(agent_id)
    actor = actor_of(request)
    name = request.GET.get("name", "")
    try:
        found = intake.image_list(actor=actor, agent_id=agent.id, timeout=PATIENCE)[
            "images"
        ]
    except ApplicationError as error:
        messages.error(request, in_words(error))
        return _back(agent)
    image = next((each for each in found if each["name"] == name), None)
    if image is None:
        raise Http404
    master = image["kind"] == KIND_MASTER
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
            refusal = in_words(error)
        else:
            text = _t("The file %(name)s was deleted.") % {"name": name}
            messages.success(request, text)
            return _back(agent)
    return question(
        request,
        agent,
        title=_t("Delete %(name)s") % {"name": name},
        form=form,
        submit=_t("Delete the file"),
        danger=True,
        why=refusal,
        failed=bool(refusal),
        goes=[
            _t("the file %(name)s on node %(node)s (%(size)s, of which %(taken)s are on the disk)")
            % {
                "name": name,
                "node": agent.id,
                "size": format_size(image["size"]),
                "taken": format_size(image["allocated"]),
            }
        ],
        notes=[_t("It cannot be brought back.")],
        back=address("admin:agents_agent_images", agent),
    )  # fmt: skip


def give_up(request: HttpRequest, agent_id: str, upload_id: str) -> HttpResponse:
    """Delete an unfinished upload."""
    agent = find(agent_id)
    try:
        intake.upload_delete(
            actor=actor_of(request), agent_id=agent.id, upload_id=upload_id
        )
    except ApplicationError as error:
        messages.error(request, in_words(error))
    else:
        text = _t("The unfinished upload was deleted.")
        messages.success(request, text)
    return _back(agent)


def _rendered(
    request: HttpRequest, agent: Agent, template: str, title: str, **context: Any
) -> HttpResponse:
    shown = {"agent": agent, **context}
    return page(request, template, shown, title=title, trail=trail(agent))


def _back(agent: Agent) -> HttpResponseRedirect:
    return HttpResponseRedirect(address("admin:agents_agent_images", agent))


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
