"""Script and style of the desk: one file under an address of its own, which browsers keep for good.

Streamlit sends the script of a component with every answer again. What it sends of this one only
imports the file, so that an answer to a label holds little beside the next trace.
"""

from hashlib import sha256
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

_SCRIPTS = (
    "watch.js",
    "state.js",
    "json.js",
    "markdown.js",
    "text.js",
    "transcript.js",
    "figures.js",
    "reading.js",
    "search.js",
    "panel.js",
    "marks.js",
    "violations.js",
    "overlays.js",
    "list.js",
    "lesson.js",
    "settle.js",
    "keys.js",
    "desk.js",
)

# A style sheet made by a script is not inline, and its text cannot end the script around it.
_STYLE = """const STYLE = new CSSStyleSheet();
STYLE.replaceSync(String.raw`{}`);
"""

# A module of a `blob:` address knows no relative addresses. Whatever is shown anew before the file
# has come is the last one asked for.
_LOADER = """const desk = import(new URL("{}", window.location.origin));
export default function (given) {{
  let close = null;
  let wanted = true;
  desk.then(
    (module) => {{ if (wanted) close = module.default(given); }},
    () => {{ given.parentElement.textContent = "The desk did not load. Reload this page."; }},
  );
  return () => {{ wanted = false; close?.(); }};
}}
"""


def _read(name: str) -> str:
    return files("app.desk").joinpath(name).read_text(encoding="utf-8")


def _address(script: bytes) -> str:
    return f"{FOLDER}{sha256(script).hexdigest()[:16]}.js"


FOLDER = "/desk/"
# A module of its own: its names are not ours, and it changes far less often.
_MARKDOWN = _read("vendor/markdown.js").encode()
_MODULE = "\n".join(
    [
        f'import {{ parser, Table, Strikethrough }} from "{_address(_MARKDOWN)}";',
        _STYLE.format(_read("desk.css")),
        *(_read(f"js/{name}") for name in _SCRIPTS),
    ]
).encode()
PATH = _address(_MODULE)
LOADER = _LOADER.format(PATH)


async def _module(request: Request) -> Response:
    script = _MODULE if request.url.path == PATH else _MARKDOWN
    headers = {"Cache-Control": "private, max-age=31536000, immutable"}
    return Response(script, media_type="text/javascript", headers=headers)


ROUTES = tuple(Route(path, _module) for path in (PATH, _address(_MARKDOWN)))
