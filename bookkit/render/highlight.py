"""Colours for code on a page: one regular expression a language, and one short element a token.

Pandoc can colour code itself, but compiles its grammar of Python anew in every process, half a second for
each page. What is told apart here is what helps reading: comments, texts, numbers, keywords, names that are
defined, decorators. Keywords become `<b>`, texts `<i>`, the rest custom elements such as `<c-co>`: to anyone
but the style sheet they mean nothing, and a page of code is much shorter than with spans and classes.
"""

from __future__ import annotations

import keyword
import re
from html import escape, unescape

BLOCK = re.compile(r'<pre\s+class="([\w -]+)"><code>(.*?)</code></pre>', re.DOTALL)

PLAIN_CODE = re.compile(r"(?<=<code>)[^<]*(?=</code>)")

ELEMENTS = {"kw": "b", "st": "i"}
_KEYWORDS = "|".join(name for name in keyword.kwlist if name[0].islower())

PYTHON = re.compile(
    rf"""
    (?P<co>\#[^\n]*)
  | (?P<st>(?i:\b(?:[rbu]|[fbr]{{2}}|f))?(?:'''(?:\\.|[^\\])*?(?:'''|\Z)|\"\"\"(?:\\.|[^\\])*?(?:\"\"\"|\Z)
        |'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"))
  | (?P<at>^[ \t]*@[\w.]+)
  | (?P<_def>\b(?:def|class)\b[ \t]+)(?P<fu>\w+)
  | (?<![\w.])(?P<dv>0[xXoObB][\da-fA-F_]+|(?:\d[\d_]*)?\.?\d[\d_]*(?:[eE][+-]?\d+)?j?)\b
  | (?<![\w.])(?P<cn>True|False|None)\b
  | (?<![\w.])(?P<kw>{_KEYWORDS})\b
  | (?P<_word>\w+)
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
JSON = re.compile(
    r"""
    (?P<at>"(?:\\.|[^"\\\n])*")(?=\s*:)
  | (?P<st>"(?:\\.|[^"\\\n])*")
  | (?<![\w.])(?P<dv>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\b
  | \b(?P<cn>true|false|null)\b
    """,
    re.VERBOSE,
)
SHELL = re.compile(
    r"""
    (?<!\S)(?P<co>\#[^\n]*)
  | (?P<st>"(?:\\.|[^"\\])*"|'[^']*')
  | ^(?P<fu>[\w./-]+)
  | (?<=\s)(?P<at>--?[\w-]+)
  | (?P<kw>&&|\|\|?)
    """,
    re.VERBOSE | re.MULTILINE,
)
LANGUAGES = {"python": PYTHON, "py": PYTHON, "json": JSON, "bash": SHELL, "sh": SHELL}


def colour_blocks(body: str) -> str:
    """A page's HTML with its code blocks coloured, each in a box of class `sourceCode`."""
    return BLOCK.sub(_block, PLAIN_CODE.sub(_with_plain_quotes, body))


def _with_plain_quotes(code: re.Match[str]) -> str:
    """Pandoc escapes quotes wherever they stand; text needs only `&`, `<` and `>` escaped."""
    return code[0].replace("&quot;", '"').replace("&#39;", "'")


def _block(found: re.Match[str]) -> str:
    classes, code = found.groups()
    grammar = next((LANGUAGES[name] for name in classes.split() if name in LANGUAGES), None)
    if grammar is None:
        return found[0]
    inner = coloured(unescape(code), grammar)
    language = classes.removesuffix(" cell-code")
    return f'<div class="sourceCode"><pre class="{language}"><code>{inner}</code></pre></div>'


def coloured(code: str, grammar: re.Pattern[str]) -> str:
    """Code as HTML, every token that the grammar names in an element of that name."""
    out: list[str] = []
    at = 0
    for token in grammar.finditer(code):
        out.append(escape(code[at : token.start()], quote=False))
        out += [_element(name, text) for name, text in token.groupdict().items() if text is not None]
        at = token.end()
    return "".join([*out, escape(code[at:], quote=False)])


def _element(name: str, text: str) -> str:
    shown = escape(text, quote=False)
    if name == "_def":
        name = "kw"
    if name.startswith("_"):
        return shown
    element = ELEMENTS.get(name, f"c-{name}")
    return f"<{element}>{shown}</{element}>"
