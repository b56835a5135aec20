"""What an agent said: text, refusals, thoughts, pictures and files, and messages that were cut.

Every reader of traces asks here. Reviewers and judges see text; a part that cannot be shown leaves
a mark in its place, and what it was is hidden metadata of the trace. Thoughts leave no mark.
"""

import base64
import binascii
import json
import mimetypes
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain
from typing import Literal, NamedTuple

from calibration.trace_formats.fields import (
    FieldError,
    bounded_metadata,
    first_of,
    note,
    part,
    readable,
)
from calibration.trace_formats.json_scanner import CutJson, cut_json, decode_text

ROLES = {
    "user": "user", "human": "user", "humanmessage": "user", "humanmessagechunk": "user",
    "assistant": "assistant", "ai": "assistant", "model": "assistant", "aimessage": "assistant",
    "aimessagechunk": "assistant",
    "system": "system", "developer": "system", "systemmessage": "system",
    "tool": "tool", "function": "tool", "toolmessage": "tool", "functionmessage": "tool",
}  # fmt: skip
TEXTS = frozenset(
    {"text", "input_text", "output_text", "text-plain", "plain_text", "text_delta", "markdown"}
)
THOUGHTS = frozenset(
    {
        "reasoning", "thinking", "redacted_thinking", "thought", "reasoning_text", "summary_text",
        "redacted_reasoning", "redacted-reasoning", "reasoning_content", "reasoningContent",
        "reasoning.text", "reasoning.summary", "reasoning.encrypted", "thinking_delta",
    }
)  # fmt: skip
# Fields of a message beside its content.
THOUGHT_FIELDS = (
    "reasoning_content", "reasoning", "reasoning_details", "reasoningContent", "thinking",
    "thinking_blocks", "redacted_thinking",
)  # fmt: skip
SPEECH_FIELDS = ("refusal", "audio", "images", "stop_reason", *THOUGHT_FIELDS)
CALLS = frozenset(
    {
        "tool_use", "tool_call", "tool-call", "function_call", "server_tool_use", "toolUse",
        "functionCall", "server_tool_call", "mcp_tool_use", "executable_code", "executableCode",
    }
)  # fmt: skip
RESULTS = frozenset(
    {
        "tool_result", "tool_call_response", "tool-result", "function_call_output", "tool-error",
        "tool_response", "toolResult", "functionResponse", "function_response",
        "server_tool_result", "code_execution_result", "codeExecutionResult",
    }
)  # fmt: skip
_PICTURE, _SOUND, _VIDEO, _FILE = "picture", "sound", "video", "file"
MEDIA = {
    **dict.fromkeys(("image_url", "input_image", "output_image", "image", "image_file"), _PICTURE),
    **dict.fromkeys(("input_audio", "output_audio", "audio", "audio_url"), _SOUND),
    **dict.fromkeys(("video", "video_url", "input_video"), _VIDEO),
    **dict.fromkeys(
        (
            "file", "document", "blob", "uri", "media", "input_file", "document_url", "file_url",
            "container_upload", "resource", "resource_link", "inline_data", "inlineData",
            "file_data", "fileData", "data",
        ),
        _FILE,
    ),
}  # fmt: skip
# They say how a message came about, and hold nothing.
_EMPTY = frozenset({"step-start", "cachePoint", "cache_point"})
_KNOWN = frozenset({*TEXTS, *THOUGHTS, *CALLS, *RESULTS, *MEDIA, *_EMPTY, "refusal"})
# Kinds of parts that Gemini and Bedrock name by their only key, not by a type.
_KEYS = _KNOWN - TEXTS - {"data"}
_ASIDE = ("thoughtSignature", "thought_signature", "videoMetadata", "thought")
_BY_TYPE = {"image": _PICTURE, "audio": _SOUND, "video": _VIDEO}

_DATA = ("data", "base64", "bytes", "file_data", "b64_json", "blob", "content", "image", "audio",
         "video", "document", "result")  # fmt: skip
_REFERENCES = ("url", "uri", "fileUri", "file_uri", "file_url", "image_url", "document_url",
               "file_id", "fileId", "id", "path", "image", "audio", "video", "document", "file",
               "data")  # fmt: skip
_TYPES = ("media_type", "mime_type", "mediaType", "mimeType", "format")
_NAMES = ("filename", "file_name", "title", "name")
_DATA_URI = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w=.+-]+)*,")
_INLINE = re.compile(
    r"@@@langfuseMedia:type=([^|@]{1,100})\|id=([^|@]{1,200})\|source=[^@]{1,100}@@@"
    r"|data:[\w.+-]{1,60}/[\w.+-]{1,60}(?:;[\w=.+-]{1,60}){0,4};base64,[A-Za-z0-9+/=_-]{64,}"
)
_LANGFUSE = re.compile(r"@@@langfuseMedia:type=([^|@]+)\|id=([^|@]+)\|")

# A tag in backticks is written about, not thought.
_TAG = r"(?:think|thinking|thought|seed:think)"
_END = re.compile(rf"</{_TAG}>|\[/THINK\]|◁/think▷", re.IGNORECASE)
_START = re.compile(rf"^[ \t]*(?:<{_TAG}>|\[THINK\]|◁think▷)", re.IGNORECASE | re.MULTILINE)
_OPENING = re.compile(rf"<{_TAG}>|\[THINK\]|◁think▷", re.IGNORECASE)

UNPACKED = 3  # times that JSON text may itself hold JSON text
MOST_THOUGHTS, MOST_MEDIA, MOST_VALUES, MOST_CUT = 16_000, 50, 20, 4
FIRST_BYTES, MOST_REFERENCE = 64, 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One text, one call of a tool or one result of it, within a message."""

    kind: Literal["text", "call", "result"]
    role: str
    text: str | None = None  # of a text or a result
    tool: str | None = None
    arguments: str | None = None
    call_id: str | None = None
    failed: bool = False  # of a result

    @property
    def content(self) -> tuple[str, ...]:
        """What is compared where there is no id: two forms of the same JSON are equal."""
        if self.kind == "call":
            return "call", self.tool or "", canonical(self.arguments)
        return self.kind, self.role if self.kind == "text" else "", canonical(self.text)


def canonical(text: str | None) -> str:
    """Return text without blanks, and JSON objects and lists in one form."""
    value = unpacked((text or "").strip())
    # Frameworks join the parts of a message with lines or without.
    return "".join(value.split()) if isinstance(value, str) else json.dumps(value, sort_keys=True)


def unpacked(value: object) -> object:
    """Return the value of JSON text that holds an object, a list or JSON text; else the text."""
    for _ in range(UNPACKED):
        if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
            return value
        try:
            value = decode_text(value)
        except FieldError:
            return value
    return value


def text_of(value: object) -> str | None:
    """Return text that is not blank; None for anything else."""
    return value if isinstance(value, str) and value.strip() else None


def kind_of(item: Mapping[str, object]) -> str | None:
    """Return the kind of a part of a message: its type, or the key that names it."""
    if item.get("thought") is True:
        return "thought"
    if isinstance(kind := item.get("type"), str) and kind.strip():
        return kind
    keys = [key for key in item if key not in _ASIDE]
    return (
        keys[0] if len(keys) == 1 and keys[0] in _KEYS and isinstance(item[keys[0]], dict) else None
    )


def is_call(kind: str | None) -> bool:
    """Return whether parts of this kind are calls of tools, also by a name not known yet."""
    name = kind or ""
    return (
        kind in CALLS
        or name.endswith("_call")
        or (name.startswith("tool-") and not is_result(kind))
    )


def is_result(kind: str | None) -> bool:
    """Return whether parts of this kind are results of tools."""
    return kind in RESULTS or (kind or "").endswith(("_tool_result", "_call_output"))


def is_thought(item: object) -> bool:
    """Return whether a part of a message is a thought."""
    return isinstance(item, dict) and kind_of(item) in THOUGHTS


def is_part(item: object) -> bool:
    """Return whether a value is a part of a message, of a kind that is known."""
    if not isinstance(item, dict) or isinstance(item.get("role"), str):
        return False
    kind = kind_of(item)
    function = kind == "function" and isinstance(item.get("function"), dict)
    return function or kind in _KNOWN or is_call(kind) or is_result(kind)


def _is_sure(item: object) -> bool:
    """Return whether a value is a part also where a tool returns it: its data may have types."""
    if not isinstance(item, dict) or not is_part(item):
        return False
    return kind_of(item) not in MEDIA or any(
        name in holder for holder in _holders(item) for name in _EVIDENCE
    )


def split_thoughts(text: str) -> tuple[str, str]:
    r"""Return what follows the last end tag of a thought, and the thought before it.

    An opening tag that nothing closes, at the beginning of a line, hides all that follows.

    Examples
    --------
    >>> split_thoughts("<think>They want X.</think>\nDone.")
    ('Done.', 'They want X.')
    >>> split_thoughts("They want X.</think>Done.")
    ('Done.', 'They want X.')
    """
    ends = [end for end in _END.finditer(text) if not _is_quoted(text, end)]
    thought, rest = (text[: ends[-1].start()], text[ends[-1].end() :]) if ends else ("", text)
    if (start := _START.search(rest)) is not None and not _is_quoted(rest, start):
        thought, rest = f"{thought}\n{rest[start.end() :]}", rest[: start.start()]
    if thought:
        return rest.strip(), _OPENING.sub("", _END.sub("\n", thought)).strip()
    return text, ""


def _is_quoted(text: str, tag: re.Match[str]) -> bool:
    return text[tag.start() - 1 : tag.start()] == "`" and text.startswith("`", tag.end())


class Speech(NamedTuple):
    """The text of a message, None without any, and the calls and results that it holds."""

    text: str | None
    others: list[Said]


@dataclass(slots=True)
class Unseen:
    """What reviewers and judges do not see of one run; each thing counts once.

    Examples
    --------
    >>> unseen = Unseen()
    >>> unseen.text([{"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}])
    '[picture 1, image/png: not shown here]'
    >>> unseen.fields()["media_not_shown"]
    1
    """

    refused: bool = False
    _thoughts: dict[str, None] = field(default_factory=dict)
    _media: dict[str, dict[str, object]] = field(default_factory=dict)
    _numbers: Counter[str] = field(default_factory=Counter)
    _unknown: dict[tuple[str, str], None] = field(default_factory=dict)
    _cut: dict[str, None] = field(default_factory=dict)

    def fields(self) -> dict[str, object]:
        """Return what is hidden, as fields of the metadata: counts first, then the content."""
        thoughts, room = [], MOST_THOUGHTS
        for thought in self._thoughts:
            if room > 0:
                thoughts.append(thought[:room])
            room -= len(thought)
        values = list(self._unknown)[:MOST_VALUES]
        every = {
            "refused": self.refused,
            "media_not_shown": len(self._media),
            "media_kinds": dict(self._numbers),
            "cut_messages": len(self._cut),
            "unknown_parts": len(self._unknown),
            "media": list(self._media.values())[:MOST_MEDIA],
            "cut_texts": list(self._cut)[:MOST_CUT],
            "parts_not_shown": [{"kind": kind, "value": value[:1_000]} for kind, value in values],
            "thoughts": thoughts,
        }
        return {name: value for name, value in every.items() if value}

    def metadata(self, items: Iterable[tuple[str, object]]) -> dict[str, object]:
        """Return the metadata of the trace: what is hidden, then these fields of the file."""
        hidden = self.fields()
        others = (item for item in items if item[0] not in hidden)
        return bounded_metadata(chain(hidden.items(), others))

    def text(self, content: object, role: str = "user") -> str | None:
        """Return the text of a content: text, null, a part, a list of parts, or other JSON."""
        return self.content(content, role).text

    def content(self, content: object, role: str) -> Speech:
        """Return the text, the calls and the results of a content, without thoughts."""
        spoken = _is_agent(role)
        if spoken and isinstance(content, str):
            content = self._parts_in(content)
        if isinstance(content, dict):
            if isinstance(content.get("parts"), list):
                content = content["parts"]
            elif is_part(content) or isinstance(content.get("text"), str):
                content = [content]
        if not isinstance(content, list):
            text = readable(content)
            return Speech(self._shown(text, spoken) if text is not None else None, [])
        # A list that a tool returns may be its data, not the parts of a message.
        strict = role != "tool" or any(map(_is_sure, content))
        texts: list[str] = []
        others: list[Said] = []
        for item in content:
            one = self._part(item, role) if strict else readable(item)
            if isinstance(one, str):
                texts.append(one)
            others += one if isinstance(one, list) else []
        text = "\n".join(texts) if texts else None
        return Speech(self._shown(text, spoken) if text is not None else None, others)

    def message(self, message: Mapping[str, object], role: str) -> Speech:
        """Return what a message holds, with what stands in fields beside its content."""
        content, others = self.content(first_of(message, "parts", "content"), role)
        texts = [] if content is None else [content]
        more = message.get("additional_kwargs")
        for holder in (message, more) if _is_agent(role) else ():
            for name in THOUGHT_FIELDS:
                self.think(part(holder, name))
            if (refusal := text_of(part(holder, "refusal"))) is not None:
                self.refused = True
                if refusal not in texts:
                    texts = [*(text for text in texts if text.strip()), refusal]
            if part(holder, "stop_reason") == "refusal":
                self.refused = True
        audio, images = message.get("audio"), message.get("images")
        if isinstance(audio, dict):
            texts += [text] if (text := text_of(audio.get("transcript"))) else []
            texts.append(self._medium("audio", audio))
        for image in images if isinstance(images, list) else []:
            inner = image if isinstance(image, dict) else {"data": image}
            texts.append(self._medium("image", inner))
        return Speech("\n".join(texts) if texts else None, others)

    def _shown(self, text: str, spoken: bool) -> str:
        """Return text without thoughts and without media that are written in it."""
        if spoken:
            text, thought = split_thoughts(text)
            self.think(thought)
        if "@@@langfuseMedia" in text or ";base64," in text:
            text = _INLINE.sub(lambda found: self._medium("blob", {"data": found[0]}), text)
        return text

    def _part(self, item: object, role: str) -> list[Said] | str | None:
        """Return the text of one part of a message, or its call or result."""
        if not isinstance(item, dict):
            return readable(item)
        kind = kind_of(item)
        inner = item.get(kind) if kind is not None and "type" not in item else None
        holder = inner if isinstance(inner, dict) else item
        if kind in THOUGHTS:
            self.think(item)
            return None
        if kind in _EMPTY:
            return None
        if is_call(kind) or (kind == "function" and isinstance(item.get("function"), dict)):
            call = call_of(holder, kind)
            done = kind not in CALLS and first_of(holder, "output", "result") is not None
            return [call, self.result({"tool_call_id": call.call_id, **holder})] if done else [call]
        if is_result(kind):
            return [self.result(holder)]
        if kind == "refusal":
            self.refused = True
            return readable(first_of(item, "refusal", "text", "content"))
        if item.get("refusal") is True:
            self.refused = True
        if kind in MEDIA and (role != "tool" or _is_sure(item)):
            return self._medium(kind, item)
        text = first_of(item, "text", "content", "value")
        if role == "tool" and (kind in MEDIA or (text is None and kind is None)):
            return readable(item)
        if kind in TEXTS or (kind is None and text is not None):
            return text if isinstance(text, str) else readable(part(text, "value") or text)
        keys = list(item)
        return self._not_known(kind or (keys[0] if len(keys) == 1 else "object"), item)

    def result(self, holder: Mapping[str, object], text: str | None = None) -> Said:
        """Return the result of a tool: `text`, or what stands in the part."""
        value: object = text
        if text is None:
            value = first_of(holder, "output", "response", "result", "content", "error")
            wrapped = part(value, "type") in ("text", "json", "content", "error-text", "error-json")
            inner = part(value, "value") if wrapped else None
            value = value if inner is None else inner
        if isinstance(value, list):
            value = self.text(value, "tool")
        elif isinstance(value, str):
            value = self._shown(value, spoken=False)
        elif isinstance(value, dict) and is_part(value):
            value = self.text([value], "tool")
        ids = ("tool_call_id", "tool_use_id", "call_id", "toolCallId", "toolUseId", "id")
        return Said(
            kind="result",
            role="tool",
            text=readable(value),
            tool=text_of(first_of(holder, "name", "toolName", "tool_name")),
            call_id=id_of(first_of(holder, *(ids if text is None else ids[:5]))),
            failed=first_of(holder, "is_error", "isError") is True
            or holder.get("status") == "error",
        )

    def returned(self, value: object) -> str | None:
        """Return the text of what a tool returned: parts of a message as such, all else as JSON."""
        if isinstance(value, list) and not any(map(_is_sure, value)):
            return readable(value)
        return self.text(value, "tool")

    def think(self, value: object) -> None:
        """Note a thought, in any of the forms that models write."""
        text = "\n".join(_words(value)).strip()
        if text:
            self._thoughts[text] = None

    def _not_known(self, kind: str, item: object) -> str:
        name = note(kind, limit=40) or "object"
        self._unknown[name, readable(item) or ""] = None
        return f"[part of kind {name}: not shown here]"

    def _medium(self, kind: str, item: Mapping[str, object]) -> str:
        """Return the mark of a picture, a sound or a file; text in a document is shown."""
        if part(item, "source", "type") == "text":  # a document of plain text
            return readable(part(item, "source", "data")) or ""
        if isinstance(text := part(item, "resource", "text"), str):
            return text
        facts = _facts(MEDIA[kind], item)
        key = json.dumps([facts.get(n) for n in ("kind", "sha256", "reference", "name")])
        if key not in self._media:
            self._numbers[str(facts["kind"])] += 1
            self._media[key] = {"number": self._numbers[str(facts["kind"])], **facts}
        known = self._media[key]
        words = [f"{known['kind']} {known['number']}"]
        words += [str(known["media_type"])] if "media_type" in known else []
        words += [_size(known["size"])] if isinstance(known.get("size"), int) else []
        return f"[{', '.join(words)}: not shown here]"

    def cut(self, text: str, role: str) -> object:
        """Return the messages in JSON text that ends early, with a mark; None if it is none.

        Of a thought, and of a part whose kind stands behind the cut, only the mark is left.
        """
        stem = text.lstrip()
        if not re.match(r'(\[\s*)?\{\s*"|\[\s*\[', stem):
            return None
        closed = cut_json(stem)
        if closed is None:
            return None
        self._cut[text] = None
        return _marked(closed, f"[cut at {len(text):,} characters]", role)

    def _parts_in(self, text: str) -> object:
        """Return the parts that the text of a message is JSON of; else the text."""
        if not re.match(r'\s*(\[\s*)?\{\s*"', text):
            return text
        value = unpacked(text)
        if isinstance(value, str):
            closed = cut_json(text.strip())
            items = closed.value if closed is not None else None
            items = items if isinstance(items, list) else [items]
            if not any(is_part(i) or _thinks(i) or _is_message(i) for i in items):
                return text
            value = self.cut(text, "assistant")
            parts = value if isinstance(value, list) else [value]
            return [part(p, "content") if _is_message(p) else p for p in parts]
        items = value if isinstance(value, list) else [value]
        return items if items and all(map(is_part, items)) else text


def _is_agent(role: str) -> bool:
    """Return whether a role is none of the others: the agent goes by many names."""
    return ROLES.get(role.lower(), "assistant") == "assistant"


def _is_message(item: object) -> bool:
    return str(part(item, "role")).lower() in ROLES


def _thinks(item: object) -> bool:
    return isinstance(item, dict) and any(name in item for name in THOUGHT_FIELDS)


_NO_WORDS = frozenset(
    {
        "type", "id", "signature", "format", "index", "status", "thought", "data",
        "encrypted_content", "redactedContent", "thoughtSignature",
    }
)  # fmt: skip


def _words(value: object, depth: int = 6) -> Iterator[str]:
    """Yield the texts of a thought, without its kind, ids and signatures."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list) and depth:
        for item in value:
            yield from _words(item, depth - 1)
    elif isinstance(value, dict) and depth:
        for key, item in value.items():
            if key not in _NO_WORDS:
                yield from _words(item, depth - 1)


def call_of(call: object, kind: str | None = None) -> Said:
    """Return the call of a tool, in any of the forms that name it."""
    function = part(call, "function") or part(call, "tool_call")
    holder = function if isinstance(function, dict) else call
    name = first_of(holder, "name", "toolName", "tool_name")
    if kind is not None and name is None and kind not in ("function_call", "tool_call"):
        name = None if kind in CALLS else kind.removesuffix("_call").removeprefix("tool-")
    arguments = first_of(holder, "arguments", "args", "input", "parameters", "action", "code")
    return Said(
        kind="call",
        role="assistant",
        tool=text_of(name) or text_of(function) or "tool",
        arguments=readable(arguments),
        call_id=id_of(first_of(call, "call_id", "id", "toolCallId", "toolUseId", "tool_call_id")),
    )


def id_of(value: object) -> str | None:
    """Return the id of a call; one framework writes a list of the ids of run and call."""
    value = unpacked(value)
    return text_of(value[-1] if isinstance(value, list) and value else value)


def _facts(kind: str, item: Mapping[str, object]) -> dict[str, object]:
    """Return type, size, digest, name, and the reference or the first bytes of a medium."""
    holders = list(_holders(item))
    media_type = _first_text(holders, _TYPES)
    name = _first_text(holders, _NAMES)
    data = next((d for h in holders for n in _DATA if (d := _bytes(h.get(n))) is not None), None)
    reference = _first_text(holders, _REFERENCES)
    if data is None and reference is not None:
        data = _bytes(reference) if _DATA_URI.match(reference) else None
    written = next((v for h in holders for v in h.values() if _is_inline(v)), None)
    if isinstance(written, str) and (found := _LANGFUSE.match(written)):
        media_type, reference, data = found[1], f"langfuse media {found[2]}", None
    elif isinstance(written, str) and (uri := _DATA_URI.match(written)):
        media_type, data = uri[1] or media_type, _bytes(written)
        reference = None
    if media_type is not None and "/" not in media_type:
        family = {_PICTURE: "image", _SOUND: "audio", _VIDEO: "video"}.get(kind, "application")
        media_type = f"{family}/{media_type}"
    if media_type is None and (data is None):
        media_type = mimetypes.guess_type((name or reference or "").partition("?")[0])[0]
    modality = _first_text(holders, ("modality",)) or (media_type or "").partition("/")[0]
    facts: dict[str, object] = {
        "kind": _BY_TYPE.get(modality, kind) if kind == _FILE else kind,
        "media_type": note(media_type, limit=100),
        "size": None if data is None else len(data),
        "sha256": None if data is None else sha256(data).hexdigest(),
        "name": note(name, limit=200),
        "reference": note(reference, limit=MOST_REFERENCE) if data is None else None,
        "first_bytes": None if data is None else base64.b64encode(data[:FIRST_BYTES]).decode(),
    }
    return {name: value for name, value in facts.items() if value is not None}


def _holders(item: Mapping[str, object], depth: int = 4) -> Iterator[Mapping[str, object]]:
    """Yield a part and the objects within it, the outer ones first."""
    yield item
    for value in item.values():
        if isinstance(value, dict) and depth:
            yield from _holders(value, depth - 1)


def _first_text(holders: Iterable[Mapping[str, object]], names: Iterable[str]) -> str | None:
    return next((t for h in holders for n in names if (t := text_of(h.get(n))) is not None), None)


def _is_inline(value: object) -> bool:
    return isinstance(value, str) and bool(_DATA_URI.match(value) or _LANGFUSE.match(value))


def _bytes(value: object) -> bytes | None:
    """Return the bytes that base64 text, a data URI or a list of numbers stands for."""
    if isinstance(value, dict) and value.get("type") == "Buffer":
        value = value.get("data")
    if isinstance(value, list) and value and all(type(b) is int and 0 <= b < 256 for b in value):
        return bytes(value)
    if not isinstance(value, str) or not value:
        return None
    if (uri := _DATA_URI.match(value)) is not None:
        if ";base64" not in uri[0]:
            return value[uri.end() :].encode("utf-8", "replace")
        value = value[uri.end() :]
    if "://" in value[:20]:
        return None
    plain = value.translate(_URL_SAFE)
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


_EVIDENCE = ("source", "data", "base64", "bytes", "file_data", "image_url", "input_audio", "blob",
             "fileUri", "file_uri", "resource", *_TYPES)  # fmt: skip
_URL_SAFE = str.maketrans("-_", "+/", "\r\n")


def _size(size: object) -> str:
    number = size if isinstance(size, int) else 0
    if number < 1_000:
        return f"{number} bytes"
    return f"{number / 1e3:.1f} kB" if number < 1e6 else f"{number / 1e6:.1f} MB"


def unseen_in(metadata: Mapping[str, object]) -> Counter[str]:
    """Return how many parts of a trace reviewers cannot see, by kind; thoughts are none.

    Examples
    --------
    >>> dict(unseen_in({"media_not_shown": 3, "media_kinds": {"picture": 3}, "cut_messages": 1}))
    {'picture': 3, 'cut message': 1}
    """
    kinds = metadata.get("media_kinds")
    counts = Counter(
        {str(k)[:40]: _number(n) for k, n in kinds.items()} if isinstance(kinds, dict) else {}
    )
    counts["part of an unknown kind"] = _number(metadata.get("unknown_parts"))
    counts["cut message"] = _number(metadata.get("cut_messages"))
    counts["file"] += max(0, _number(metadata.get("media_not_shown")) - _of_media(counts))
    return +counts


def _of_media(counts: Counter[str]) -> int:
    return sum(counts[kind] for kind in (_PICTURE, _SOUND, _VIDEO, _FILE))


def _number(value: object) -> int:
    return value if type(value) is int and 0 < value < 1_000_000 else 0


def _marked(closed: CutJson, mark: str, role: str) -> object:
    """Return a completed value with a mark where it was cut, without what must not be seen."""
    path: list[tuple[object, object]] = [(None, closed.value)]  # the open containers, by their key
    for _ in range(closed.open - 1):
        here = path[-1][1]
        if isinstance(here, list) and here:
            path.append((len(here) - 1, here[-1]))
        elif isinstance(here, dict) and here:
            path.append((list(here)[-1], here[list(here)[-1]]))
    holder = path[-1][1]
    last = list(holder)[-1] if isinstance(holder, dict) and holder else None
    hidden = any(isinstance(item, dict) and kind_of(item) in THOUGHTS for _, item in path) or any(
        key in THOUGHT_FIELDS for key in (*(key for key, _ in path), last)
    )
    if not hidden and closed.in_text and isinstance(holder, dict) and last is not None:
        typed, spoken = kind_of(holder), str(holder.get("role")).lower() in ROLES
        is_text = typed in TEXTS or typed == "refusal"
        if (is_text or (spoken and last in ("content", "refusal"))) and last != "type":
            holder[last] = f"{holder[last]} {mark}"
            return closed.value
    return _replaced(closed, path, mark, role)


def _replaced(closed: CutJson, path: list[tuple[object, object]], mark: str, role: str) -> object:
    """Put a mark in the place of the part or the message that was cut."""
    text_part = {"type": "text", "text": mark}
    message: object = {"role": role, "content": mark}
    for k in range(len(path) - 1, -1, -1):
        key, item = path[k]
        innermost = k == len(path) - 1
        if isinstance(item, list) and key not in ("tool_calls", "toolCalls"):
            # What is open in a list is its last element; a list that was cut by itself has none.
            kept = item[:-1] if not innermost or closed.in_text else item
            item[:] = [*kept, text_part if key in ("parts", "content") else message]
            return closed.value
        if isinstance(item, list) and not innermost:
            item.pop()
        elif isinstance(item, dict) and _is_message(item):
            last = list(item)[-1]
            if last not in ("role", "tool_calls", "toolCalls", "content", "parts"):
                del item[last]
            whole = None if innermost and last == "content" else first_of(item, "parts", "content")
            parts = whole if isinstance(whole, list) else [] if whole is None else [whole]
            item.pop("parts", None)
            item["content"] = [*parts, text_part]
            return closed.value
    return message
