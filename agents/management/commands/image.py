"""`manage.py image`: the files of a node's image directory from the shell."""

from __future__ import annotations

import hashlib
import os
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import IO, Any

from agents import intake, intake_jobs
from agents.protocol.answers import WRONG_CHECKSUM, Upload
from agents.protocol.filenames import check_sha256
from ipxeready.actors import Actor
from ipxeready.errors import ApplicationError, Conflict, NodeRefused
from ipxeready.jobs.services import job_run
from ipxeready.shell import Progress, ShellCommand, Usage, add_json, shell_actor
from ipxeready.storage.jobs import BYTES
from ipxeready.storage.sizes import format_size

#: Sent at once; a piece that fails is sent again.
_PIECE = 8 << 20
#: Tries for one piece, and seconds between them.
_TRIES, _PAUSE = 5, 1.0


class Command(ShellCommand):
    """Upload, list, convert, delete."""

    help = "Images of a storage node: upload, list, convert, delete."

    def arguments(self, parser: ArgumentParser) -> None:
        """One sub-command for each service."""
        commands = parser.add_subparsers(dest="what", required=True)
        upload = commands.add_parser(
            "upload",
            help="bring a file to a node; the same command goes on where it stopped",
        )
        upload.add_argument("node", metavar="NODE")
        upload.add_argument("file", metavar="FILE", type=Path)
        upload.add_argument(
            "--name",
            help="its name there: .img (a master with _tpl_ in it), .iso, or .qcow2 .vhdx .vhd .vmdk .raw to be converted",
        )
        upload.add_argument(
            "--sha256",
            metavar="HEX",
            help="what it must be; without it the file here is read along and compared",
        )
        listing = commands.add_parser("list", help="show every file of a node")
        listing.add_argument("node", metavar="NODE")
        convert = commands.add_parser(
            "convert",
            help="make an image from a file of another format; the file stays",
        )
        convert.add_argument("node", metavar="NODE")
        convert.add_argument("source", metavar="SOURCE")
        convert.add_argument("name", metavar="NAME", help="the new image, .img")
        convert.add_argument(
            "--format",
            metavar="FORMAT",
            help="what the source must be; it is read from the file in any case",
        )
        delete = commands.add_parser("delete", help="remove files that nobody uses")
        delete.add_argument("node", metavar="NODE")
        delete.add_argument("names", nargs="+", metavar="NAME")
        delete.add_argument(
            "--master", action="store_true", help="masters among them go too"
        )
        delete.add_argument("--yes", action="store_true", help="do not ask")
        add_json(commands.choices.values())

    def run(self, options: dict[str, Any]) -> None:
        """Call the service."""
        actor = shell_actor()
        match options["what"]:
            case "upload":
                self._upload(actor, options)
            case "list":
                self._list(actor, options["node"])
            case "convert":
                self._convert(actor, options)
            case "delete":
                self._delete(actor, options)

    # --- upload -------------------------------------------------------------
    def _upload(self, actor: Actor, options: dict[str, Any]) -> None:
        path: Path = options["file"]
        if not path.is_file():
            raise Usage(
                f"{path}: {'is not a file' if path.exists() else 'does not exist'}"
            )
        name = options["name"] or path.name
        node, sha256 = options["node"], options["sha256"]
        with path.open("rb") as stream:
            while (done := self._sent(actor, node, name, stream, sha256)) is None:
                self.warn(
                    f"{name}: what was there is not the beginning of this file; sending it from its start"
                )
                stream.seek(0)
        self.emit(done)
        self.say(
            f"{done['name']}: {format_size(done['size'])}, sha256 {done['sha256']}"
        )

    def _sent(
        self, actor: Actor, node: str, name: str, stream: IO[bytes], sha256: str | None
    ) -> dict[str, Any] | None:
        """What the node has made of the file; None when an upload that was continued was another file's, and is given up."""
        size = os.fstat(stream.fileno()).st_size
        upload = _begin(actor, node, name, size, sha256)
        if upload["offset"]:
            self.warn(f"{name}: going on at {format_size(upload['offset'])}")
        with self.progress("uploading") as bar:
            digest = _send(actor, node, upload, stream, size, bar)
        if sha256 and digest != check_sha256(sha256):
            raise Conflict(
                f"{stream.name} has sha256 {digest}, not the expected {sha256}; the upload {upload['id']} was left unfinished",
                code="upload.checksum",
            )
        work = intake_jobs.finish_work(
            actor=actor, agent_id=node, upload_id=upload["id"], sha256=digest
        )
        try:
            with self.progress("verifying") as bar:
                return dict(job_run(actor=actor, work=work, draw=bar))
        except NodeRefused as error:
            if not error.error.startswith(WRONG_CHECKSUM):
                raise
            # The file here was read whole, so nothing that is sent now can mend it.
            intake.upload_delete(actor=actor, agent_id=node, upload_id=upload["id"])
            if not upload["offset"]:
                raise
            return None

    # --- the others -----------------------------------------------------------
    def _list(self, actor: Actor, node: str) -> None:
        found = intake.image_list(actor=actor, agent_id=node)
        unfinished = intake.upload_list(actor=actor, agent_id=node)
        self.emit({**found, "uploads": unfinished})
        rows: list[tuple[str | None, ...]] = [
            (
                image["name"],
                image["kind"],
                format_size(image["size"]),
                format_size(image["allocated"]),
                image.get("target") or image.get("problem"),
            )
            for image in found["images"]
        ]
        rows += [
            (
                upload["name"],
                "upload",
                format_size(upload["size"]) if upload["size"] else None,
                format_size(upload["offset"]),
                f"unfinished, {upload['id']}",
            )
            for upload in unfinished
        ]
        self.table(["name", "kind", "size", "allocated", "target or problem"], rows)

    def _convert(self, actor: Actor, options: dict[str, Any]) -> None:
        work = intake_jobs.convert_work(
            actor=actor,
            agent_id=options["node"],
            source=options["source"],
            name=options["name"],
            format=options["format"],
        )
        with self.progress("converting") as bar:
            done = job_run(actor=actor, work=work, draw=bar)
        self.emit(done)
        self.say(
            f"{done['name']}: {format_size(done['size'])} from {done.get('format')}, "
            f"{format_size(done.get('bytes', 0))} on the disk"
        )

    def _delete(self, actor: Actor, options: dict[str, Any]) -> None:
        names = list(dict.fromkeys(options["names"]))
        self.confirm(
            f"delete {', '.join(names)} on {options['node']}? They cannot be brought back.",
            yes=options["yes"],
        )
        done: list[dict[str, Any]] = []
        failed: list[dict[str, Any]] = []
        for name in names:
            try:
                gone = intake.image_delete(
                    actor=actor,
                    agent_id=options["node"],
                    name=name,
                    master=options["master"],
                )
                done.append(dict(gone))
            except ApplicationError as error:
                failed.append({"name": name, "error": error.message})
        self.emit({"succeeded": done, "failed": failed})
        for entry in failed:
            self.warn(f"{entry['name']}: {entry['error']}")
        for entry in done:
            self.say(f"{entry['deleted']}: deleted, {format_size(entry['freed'])} free")
        self.finish(done=len(done), failed=len(failed), what="files")


def _begin(actor: Actor, node: str, name: str, size: int, sha256: str | None) -> Upload:
    """The unfinished upload of that name and size, else a new one."""
    for upload in intake.upload_list(actor=actor, agent_id=node):
        if upload["name"] == name:
            if upload["size"] == size:
                return upload
            raise Conflict(
                f"{name} is being uploaded with another size ({upload['size']} bytes, this file has {size}): "
                f"delete that one first (upload {upload['id']} on the page of the node's images), or take another name"
            )
    return intake.upload_create(
        actor=actor, agent_id=node, name=name, size=size, sha256=sha256
    )


def _send(
    actor: Actor,
    node: str,
    upload: Upload,
    stream: IO[bytes],
    size: int,
    bar: Progress,
) -> str:
    """Send what is missing; the checksum of the whole file, which is read along."""
    digest, at = hashlib.sha256(), 0
    there, tries = upload["offset"], 0
    while at < size:
        chunk = stream.read(_PIECE)
        if not chunk:
            raise Usage("the file became shorter while it was read")
        digest.update(chunk)
        end = at + len(chunk)
        while there < end:
            part = chunk[there - at :]
            try:
                there = _write(actor, node, upload["id"], there, part)
                tries = 0
            except ApplicationError:
                tries += 1
                if tries >= _TRIES:
                    raise
                time.sleep(_PAUSE)
                now = intake.upload_get(
                    actor=actor, agent_id=node, upload_id=upload["id"]
                )
                if not at <= now["offset"] <= end:
                    raise
                there = now["offset"]
        at = end
        bar(at, size, BYTES)
    return digest.hexdigest()


def _write(actor: Actor, node: str, upload_id: str, at: int, part: bytes) -> int:
    rest = memoryview(part)

    def read(count: int) -> bytes:
        nonlocal rest
        taken, rest = rest[:count], rest[count:]
        return bytes(taken)

    done = intake.upload_write(
        actor=actor,
        agent_id=node,
        upload_id=upload_id,
        offset=at,
        length=len(part),
        read=read,
    )
    return done["offset"]
