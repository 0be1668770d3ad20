"""No text of a page slips past the catalogue: templates, arguments of code that are shown to people, scripts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipxeready.conf import REPOSITORY
from ipxeready.management.commands.translations import FOLDERS

TEMPLATES = sorted((REPOSITORY / "templates").rglob("*.html"))
SCRIPTS = sorted((REPOSITORY / "static").rglob("*.js"))
SOURCES = [
    path
    for folder in FOLDERS
    for path in sorted((REPOSITORY / folder).rglob("*.py"))
    # The agent has no pages; commands, the API and its description speak English; an app's label is a name.
    if not {"node", "commands", "management"} & set(path.parts)
    and path.name
    not in ("api.py", "apps.py", "openapi.py", "schema.py", "serializers.py")
]

#: The same in every language: names, units, what stands in files.
SAME = frozenset(
    [
        "ipxeready",
        "IPXE",
        "iPXE",
        "IQN",
        "MAC",
        "IP",
        "ISO",
        "LUN",
        "CD",
        "ID",
        "SHA",
        "SHA-256",
        "UEFI",
        "BIOS",
        "CSV",
        "JSON",
        "JSONL",
        "API",
        "OpenAPI",
        "CHAP",
        "DHCP",
        "dnsmasq",
        "Shift",
        "MiB",
        "GiB",
        "TiB",
        "qcow2",
        "vhdx",
        "vhd",
        "vmdk",
        "raw",
        "acl",
        "chap",
        "off",
        "PXE",
        "TFTP",
        "HTTP",
        "URL",
        "stgt",
        "LIO",
        "Ctrl",
        "Enter",
        "Esc",
        "XFS",
        "Btrfs",
    ]
)
#: Attributes that people read or hear.
SPOKEN = ("title", "alt", "placeholder", "aria-label", "aria-description", "label")
_WORD = re.compile(r"[^\W\d_][\w'-]*")

# --- templates ------------------------------------------------------------------

_TRANSLATED = re.compile(
    r"{%\s*blocktrans(?:late)?\b.*?{%\s*endblocktrans(?:late)?\s*%}"
    r"|{%\s*block bodyclass\s*%}.*?{%\s*endblock\s*%}"
    r"|{%\s*comment\b.*?{%\s*endcomment\s*%}|{#.*?#}",
    re.DOTALL,
)
_TAGS = re.compile(r"{%.*?%}|{{.*?}}", re.DOTALL)
_DATA = re.compile(
    r"<(script|style|code|pre|svg)\b.*?</\1>|<[^>]*\btranslate=\"no\"[^>]*>[^<]*|&\w+;|<!DOCTYPE[^>]*>",
    re.DOTALL,
)


def words(text: str) -> list[str]:
    """What of it is a word of a language."""
    return [word for word in _WORD.findall(text) if word not in SAME]


def left_in(template: str) -> list[str]:
    """Text of a template that no tag translates."""
    plain = _TAGS.sub(" \0 ", _TRANSLATED.sub(" ", template))
    found = []
    for name, quoted in re.findall(r"\b([\w-]+)=\"([^\"]*)\"", plain):
        said = name in SPOKEN or (
            # Names of fields, as scripts look them up, are no text.
            name.startswith("data-")
            and not name.startswith("data-shows-")
            and " " in quoted.replace("\0", "").strip()
        )
        if said and words(quoted):
            found.append(f'{name}="{quoted}"')
    for value in re.findall(r'<input[^>]*type="submit"[^>]*value="([^"]*)"', plain):
        if words(value):
            found.append(value)
    text = re.sub(r"<[^>]*>", "\n", _DATA.sub(" ", plain))
    found += [line.strip() for line in text.splitlines() if words(line)]
    return found


@pytest.mark.parametrize(
    "path", TEMPLATES, ids=lambda path: str(path.relative_to(REPOSITORY / "templates"))
)
def test_a_template_has_no_text_of_its_own(path: Path) -> None:
    assert left_in(path.read_text(encoding="utf-8")) == []


def test_what_is_left_in_a_template_is_found() -> None:
    assert left_in("<p>Hello</p>") == ["Hello"]
    assert left_in('<a title="Go there">{{ x }}</a>') == ['title="Go there"']
    assert left_in('<input type="submit" value="Send">') == ["Send"]
    assert (
        left_in('{% if a == "word" %}<b>{% translate "Hello" %}</b>{% endif %}') == []
    )
    assert (
        left_in("{% blocktranslate %}Hello {{ x }}{% endblocktranslate %}: MAC") == []
    )
    assert left_in('<b class="some class">{{ x|default:"none" }}</b>') == []


# --- code -----------------------------------------------------------------------

#: Arguments and attributes of classes that people see on pages.
SHOWN = frozenset(
    [
        "title",
        "label",
        "help_text",
        "verbose_name",
        "verbose_name_plural",
        "description",
        "empty_label",
        "search_help_text",
        "submit",
        "goes_title",
        "index_title",
        "mend",
        "error_messages",
        "legend",
        "heading",
    ]
)
#: Calls whose first text is shown, by their last name and its place.
CALLS = {"message_user": 1, "add_error": 1}


def marks(node: ast.expr | None) -> Iterator[str]:
    """Texts in an expression that are shown as they stand: not inside a call, not a key."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if words(node.value):
            yield node.value
    elif isinstance(node, ast.JoinedStr):
        for part in node.values:
            if isinstance(part, ast.Constant):
                yield from marks(part)
    elif isinstance(node, ast.BinOp):
        yield from marks(node.left)
    elif isinstance(node, ast.IfExp):
        yield from marks(node.body)
        yield from marks(node.orelse)
    elif isinstance(node, ast.Dict):
        for value in node.values:
            yield from marks(value)


def unmarked(source: str) -> list[str]:
    """Texts for people in code that are not marked for translation, with their lines."""
    found: list[tuple[int, str]] = []
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for word in node.keywords:
                if word.arg in SHOWN:
                    found += [(node.lineno, text) for text in marks(word.value)]
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            at = CALLS.get(name)
            if at is not None and len(node.args) > at:
                found += [(node.lineno, text) for text in marks(node.args[at])]
        elif isinstance(node, ast.ClassDef):
            for each in node.body:
                if isinstance(each, ast.Assign | ast.AnnAssign):
                    targets = (
                        each.targets if isinstance(each, ast.Assign) else [each.target]
                    )
                    if any(getattr(target, "id", "") in SHOWN for target in targets):
                        found += [(each.lineno, text) for text in marks(each.value)]
    return [f"{line}: {text}" for line, text in sorted(found)]


@pytest.mark.parametrize(
    "path", SOURCES, ids=lambda path: str(path.relative_to(REPOSITORY))
)
def test_texts_for_people_in_code_are_marked(path: Path) -> None:
    assert unmarked(path.read_text(encoding="utf-8")) == []


def test_what_is_not_marked_in_code_is_found() -> None:
    assert unmarked('f(label="Host name")') == ["1: Host name"]
    assert (
        unmarked('f(label=_("Host name"), title=f"{x} @ {y}", description="MAC")') == []
    )
    assert unmarked('f(title=f"Worker {x}")') == ["1: Worker "]
    assert unmarked('self.message_user(request, "Done %s" % x)') == ["1: Done %s"]
    assert unmarked('class A:\n    title = "Disk"\n') == ["2: Disk"]


# --- refusals -------------------------------------------------------------------

#: What is raised, and whose words a page may show.
REFUSALS = frozenset(
    [
        "ApplicationError",
        "Cancelled",
        "Conflict",
        "Failed",
        "FileBroken",
        "Forbidden",
        "Invalid",
        "LengthRequired",
        "MethodRefused",
        "NoRoom",
        "NodeRefused",
        "NotFound",
        "RecordBroken",
        "RegistrationFull",
        "TgtError",
        "TooLarge",
        "Unauthenticated",
        "Unavailable",
        "UpstreamFailed",
        # Of a filter that the API shares with pages.
        "ValidationError",
    ]
)
#: What runs on a storage node: pages of the control plane show its words.
NODE = [
    *sorted((REPOSITORY / "agents/node").rglob("*.py")),
    REPOSITORY / "ipxeready/lio.py",
]
#: The modules whose refusals no page shows, and why. Commands and the control plane's api.py are no SOURCES at all.
UNSEEN = {
    "agents/intake_api.py": "addresses of the API alone: pages hand files on through formupload.py",
    "ipxeready/web/permissions.py": "what the API says of a role; a page has its own words",
    "ipxeready/web/parsers.py": "what is wrong with a JSON body; pages send forms",
}


def unsaid(source: str) -> list[str]:
    """Words of refusals that no page can say in another language, with their lines: `said()` is not around them."""
    found: list[tuple[int, str]] = []
    for scope in (tree := ast.parse(source), *ast.walk(tree)):
        if scope is not tree and not isinstance(
            scope, ast.FunctionDef | ast.AsyncFunctionDef
        ):
            continue
        names: dict[str, list[str]] = {}
        body = list(ast.walk(scope))
        for node in body:
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
                targets = (
                    node.targets if isinstance(node, ast.Assign) else [node.target]
                )
                words = list(marks(node.value))
                for target in targets:
                    if isinstance(target, ast.Name) and scope is not tree:
                        names.setdefault(target.id, []).extend(words)
                    elif getattr(target, "attr", "") == "message":
                        found += [(node.lineno, text) for text in words]
        for node in body:
            if not isinstance(node, ast.Call):
                continue
            if getattr(node.func, "attr", getattr(node.func, "id", "")) not in REFUSALS:
                continue
            told = [
                *node.args[:1],
                *(
                    word.value
                    for word in node.keywords
                    if word.arg in ("message", "error")
                ),
            ]
            for words_of in told:
                found += [(node.lineno, text) for text in marks(words_of)]
                if isinstance(words_of, ast.Name):
                    found += [
                        (node.lineno, text) for text in names.get(words_of.id, ())
                    ]
    return [f"{line}: {text}" for line, text in sorted(set(found))]


@pytest.mark.parametrize(
    "path",
    [path for path in SOURCES if str(path.relative_to(REPOSITORY)) not in UNSEEN]
    # Its refusals of parameters are also those of the filters of pages.
    + [REPOSITORY / "ipxeready/web/serializers.py"]
    + [path for path in NODE if path not in SOURCES],
    ids=lambda path: str(path.relative_to(REPOSITORY)),
)
def test_a_refusal_can_be_said_in_another_language(path: Path) -> None:
    found = unsaid(path.read_text(encoding="utf-8"))
    assert found == [], "put said() of ipxeready/said.py around it, values by name"


def test_the_modules_whose_refusals_are_unseen_have_some() -> None:
    for name in UNSEEN:
        assert unsaid((REPOSITORY / name).read_text(encoding="utf-8")) != []


def test_a_refusal_that_cannot_be_said_is_found() -> None:
    assert unsaid('raise Invalid("must be a number", field="x")') == [
        "1: must be a number"
    ]
    assert unsaid('raise Conflict(f"there is {x}")') == ["1: there is "]
    assert unsaid('raise errors.NotFound("no " + x)') == ["1: no "]
    assert unsaid('raise NodeRefused(agent=a, status=1, error="gone")') == ["1: gone"]
    assert unsaid('error.message = f"{a} then: {b}"') == ["1:  then: "]
    assert unsaid('error.message += " and so on"') == ["1:  and so on"]
    assert unsaid('def f():\n    rule = "must be"\n    raise Invalid(rule)') == [
        "3: must be"
    ]
    assert unsaid('raise Invalid(said("must be {x}", x=1))') == []
    assert unsaid('raise Invalid(_("must be one"), field=f"{name}")') == []
    assert unsaid('raise Invalid(f"{a}: {b}", code="a.code")') == []
    assert unsaid('rule = "must be"\ndef f(rule):\n    raise Invalid(rule)') == []


# --- what a node says -----------------------------------------------------------

#: Sentences of a node that are no pages': what it raises at itself, what it writes in its log, what others say.
KEPT = frozenset(
    [
        # Its log, and the field `how` of answers.
        "reflink, but the file system shares nothing",
        "full copy, because ",
        "converted from ",
        "the clone had ",
        " bytes instead of ",
        "the clone differed at byte ",
        "the source became shorter while it was read",
        # Errors of who writes code.
        " without an initiator",
        "access chap without a secret",
        "a field is given twice",
        # What other programs say.
        "No space left",
        "Disk quota",
        "Cannot set dbroot",
        "tgt daemon",
        "Backing store path",
        "Backing store path: ",
        "I_T nexus information:",
        "LUN information:",
        "Account information:",
        "ACL information:",
        # What an upload's refusal begins with, looked for by the command that sends it.
        "wrong checksum",
    ]
)
_SENTENCE = re.compile(r"[A-Za-z]{2,} [a-z]")
#: Calls that take a sentence and are no page: logs, patterns, what is told where the agent is started and cannot be.
_NOT_SHOWN = ("StartError", "logger", "re", "said")


def sentences(source: str) -> list[str]:
    """Sentences of code that nothing marks, with their lines: no docstrings and logs, and no words of others that a constant looks up."""
    tree = ast.parse(source)
    left_out: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left_out.add(node.value)
        elif isinstance(node, ast.Call):
            of = getattr(node.func, "value", node.func)
            if getattr(of, "id", "") in _NOT_SHOWN:
                left_out.update(ast.walk(node))
        elif (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Dict)
            and getattr(node.targets[0], "id", "").isupper()
        ):
            left_out.update(key for key in node.value.keys if key is not None)
    return [
        f"{node.lineno}: {node.value}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node not in left_out
        and _SENTENCE.search(node.value)
        and node.value not in KEPT
    ]


@pytest.mark.parametrize(
    "path",
    [*NODE, *sorted((REPOSITORY / "agents/protocol").rglob("*.py"))],
    ids=lambda path: str(path.relative_to(REPOSITORY)),
)
def test_a_node_says_no_sentence_that_a_page_cannot(path: Path) -> None:
    found = sentences(path.read_text(encoding="utf-8"))
    assert found == [], "put said() of ipxeready/said.py around it, values by name"


def test_a_sentence_of_a_node_that_is_not_marked_is_found() -> None:
    assert sentences('problems.append("the disk hums")') == ["1: the disk hums"]
    assert sentences('def f():\n    return f"{x} is gone"') == ["2:  is gone"]
    assert (
        sentences('def f():\n    """It is told."""\n    return said("it is gone")')
        == []
    )
    assert sentences('logger.info("%s is gone", x)') == []
    assert sentences('_WORDS = {"no such thing": GONE}') == []
    assert sentences('x = {"a": "no such thing"}') == ["1: no such thing"]


# --- scripts --------------------------------------------------------------------

_COMMENT = re.compile(r"/\*.*?\*/|(?<![:\"'`])//[^\n]*", re.DOTALL)
_LITERAL = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`", re.DOTALL)  # fmt: skip
#: Where a text of a script reaches people.
_SPOKEN_TO = re.compile(
    r"(?:textContent|innerText|title|ariaLabel|placeholder|alert|confirm|prompt)\s*(?:=(?!=)|\()\s*$"
)


def said_by(script: str) -> list[str]:
    """Texts of a script that are sentences, or that it shows as they stand."""
    code = _COMMENT.sub(" ", script)
    found = []
    for literal in _LITERAL.finditer(code):
        text = next(part for part in literal.groups() if part is not None)
        plain = re.sub(r"\$\{[^}]*\}", " ", text)
        sentence = re.search(r"[A-Za-z]{2,} [a-z]{2,}", plain) and not re.search(
            r"[\[\]{}#.>:=/]", plain
        )
        shown = _SPOKEN_TO.search(code[: literal.start()]) and words(plain)
        if sentence or shown:
            found.append(text)
    return found


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_takes_its_texts_from_the_page(path: Path) -> None:
    assert said_by(path.read_text(encoding="utf-8")) == []


def test_what_a_script_says_is_found() -> None:
    assert said_by('state.textContent = "Done";') == ["Done"]
    assert said_by("const a = 'No connection';") == ["No connection"]
    assert said_by("x.textContent = `Sending ${n}`;") == ["Sending ${n}"]
    assert said_by('// a comment\nx.textContent = form.dataset.done; f("click");') == []
    assert said_by('document.querySelector("table tbody tr.bad > td");') == []
