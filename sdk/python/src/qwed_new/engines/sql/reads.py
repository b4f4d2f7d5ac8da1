"""Decide whether SQL only reads, in every database: a port of the judge in internal/sqltext.

docs/design/0022-one-judge-of-sql.md explains the rule. A test holds both implementations to the same answers.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

MAX_TEXT = 1 << 20
_MAX_DEPTH = 500

_HASH, _DASH = 1, 2  # tails: "#", a comment in MySQL, and "--" without a space, not a comment in MySQL


class Token(NamedTuple):
    kind: str  # symbol, word, name, literal, number or parameter
    text: str
    tail: int
    first: bool  # of its line


class _Differ(Exception):
    """Dialects may split the text differently."""


@cache
def words() -> dict[str, frozenset[str]]:
    """The sections of words.txt."""
    sections: dict[str, set[str]] = {}
    current: set[str] = set()
    for line in Path(__file__).with_name("words.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            current = sections.setdefault(line.strip().strip("[]"), set())
        elif not line.startswith("#"):
            current.update(line.split())
    return {name: frozenset(section) for name, section in sections.items()}


def why_not(sql: str, changes: bool = False) -> str:
    """Why a text may do more than read; empty if it only reads. With changes, only why databases may split it
    differently."""
    if len(sql.encode("utf-8", "surrogatepass")) > MAX_TEXT:
        return "the text is too long to be judged"
    try:
        tokens = _Lexer(sql).run()
    except _Differ as error:
        return str(error)
    if changes:
        return ""
    begun = 0
    for t in tokens:
        begun |= t.tail
    for comments in range(4):
        if comments & ~begun:
            continue
        statements = _split([t for t in tokens if not t.tail & comments])
        if not statements:
            return "there is no statement"
        for statement in statements:
            if reason := _Walk(statement).run():
                return reason
    return ""


def _split(tokens: list[Token]) -> list[list[Token]]:
    statements: list[list[Token]] = [[]]
    for t in tokens:
        if t.kind == "symbol" and t.text == ";":
            statements.append([])
        else:
            statements[-1].append(t)
    return [s for s in statements if s]


_ENDINGS = "\r\v\f\0\u0085\u2028\u2029"
_LOOKALIKES = "\0\u02b9\u02ba\u02bb\u02bc\u02c8\u2032\u2033\u2035\uff02\uff07\uff3c\uff1b\ufe68"
_OPERATOR = frozenset("+-*/<>=~!@#%^&|?")
_OPERATORS = frozenset(
    "+ - * / % %% ^ = == <> != < > <= >= || && & | ~ << >> ~* !~ !~* ~~ ~~* !~~ !~~* "
    "-> ->> #> #>> #- # ## @> <@ @@ @? @ ? ?| ?& <=> <-> ^= !< !> ! ** |/ ||/ -|- &< &> ^@ *= =*".split()
)
_FOLDABLE = ((0x0130, 0x0131), (0x017F, 0x017F), (0x2100, 0x214F), (0xFF00, 0xFFEF), (0x1D400, 0x1D7FF))
_BACKTICKED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_ $.-")


def _digit(c: str) -> bool:
    return "0" <= c <= "9"


def _letter(c: str) -> bool:
    return "a" <= c <= "z" or "A" <= c <= "Z"


def _variable(c: str) -> bool:
    return c == "_" or _letter(c)


def _lower(text: str) -> str:
    """Go's strings.ToLower, which maps each character by itself."""
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


class _Lexer:
    def __init__(self, text: str) -> None:
        self.text, self.at, self.tail, self.first, self.bracket, self.word, self.depth = text, 0, 0, True, False, -1, 0
        self.tokens: list[Token] = []

    def run(self) -> list[Token]:
        try:
            self.text.encode("utf-8")
        except UnicodeEncodeError:
            raise _Differ("the text is not valid UTF-8") from None
        while self.at < len(self.text):
            self._next()
        if self.bracket:
            raise _Differ("a bracket has no end")
        return self.tokens

    def _peek(self, n: int) -> str:
        return self.text[self.at + n] if self.at + n < len(self.text) else ""

    def _add(self, kind: str, text: str) -> None:
        self.tokens.append(Token(kind, text, self.tail, self.first))
        self.first = False

    def _next(self) -> None:
        text, c, after = self.text, self.text[self.at], self._peek(1)
        if c in " \t":
            self.at += 1
        elif c == "\n":
            self.at, self.first, self.tail = self.at + 1, True, 0
        elif c == "\r":
            if self.tail and after != "\n":
                raise _Differ("a carriage return ends a comment in some databases")
            self.at, self.first = self.at + 1, True
        elif c == "-" and after == "-":
            self._dashes()
        elif c == "/" and after == "*":
            self._comment()
        elif c in "'\"":
            self._quoted(c)
        elif c == "`":
            self._backtick()
        elif c == "$":
            self._dollar()
        elif c in "[]":
            if self._after_non_ascii() or (c == "]" and after == "]"):
                raise _Differ("databases disagree about where a name in brackets ends")
            self.bracket = c == "["
            self._add("symbol", c)
            self.at += 1
        elif _digit(c) or (c == "." and _digit(after)):
            self._number()
        elif c == "_" or _letter(c) or c >= "\x80":
            self._plain_word()
        elif c == "@" and (_variable(after) or (after == "@" and _variable(self._peek(2)))):
            end = self.at + 1
            while end < len(text) and (_variable(text[end]) or _digit(text[end]) or text[end] in "@$."):
                end += 1
            self._add("parameter", text[self.at : end])
            self.at = end
        elif c in "(),;.:":
            self._punctuation(c, after)
        elif c in _OPERATOR:
            self._operator()
        else:
            raise _Differ(f"the character {c!r} outside of strings means different things to databases")

    def _dashes(self) -> None:
        if self.bracket:
            raise _Differ("a comment begins between brackets")
        # The line is only looked for where a comment begins: many dashes would look for it many times.
        if self._peek(2) and self._peek(2) not in " \t\r\n":
            self.tail |= _DASH
            self._add("symbol", "-")
            self._add("symbol", "-")
            self.at += 2
            return
        end = self.text.find("\n", self.at)
        body = self.text[self.at + 2 : end if end >= 0 else len(self.text)]
        if any(c in _ENDINGS for c in body.removesuffix("\r")):
            raise _Differ("a comment has a character that ends a line in some databases")
        self.at += 2 + len(body)

    def _comment(self) -> None:
        end = self.text.find("*/", self.at + 2)
        if end < 0:
            raise _Differ("a comment has no end")
        body = self.text[self.at + 2 : end]
        if "/*" in body + "*":
            raise _Differ("a comment in a comment: databases disagree about its end")
        if body.startswith(("!", "+", "m!", "M!")):
            raise _Differ("some databases execute a comment that begins with /*! or /*+")
        if "\0" in body or self.bracket or (self.tail and ("\n" in body or "\r" in body)):
            raise _Differ("databases disagree about where a comment begins or ends")
        self.at = end + 2

    def _quoted(self, quote: str) -> None:
        text = self.text
        if quote == "'" and self.word == self.at and self.tokens and self.tokens[-1].text in (
            "q", "nq", "r", "br", "rb"):
            raise _Differ("a string with the prefix q or r ends where the dialect wants it to")
        i = start = self.at + 1
        while i < len(text):
            if text[i] == "\\":
                end = i
                while end < len(text) and text[end] == "\\":
                    end += 1
                if text[end : end + 1] == quote:
                    raise _Differ("a backslash before a quote escapes it in some databases; double the quote instead")
                i = end
            elif text[i] != quote:
                i += 1
            elif text[i + 1 : i + 2] == quote:
                if i == start or text[i + 2 : i + 3] == quote:
                    raise _Differ("three quotes in a row begin or end a string in some databases")
                i += 2
            else:
                break
        else:
            raise _Differ("a quote has no end")
        body = text[start:i]
        if any(c in _LOOKALIKES for c in body):
            raise _Differ("a string has a character that some databases turn into a quote")
        if (self.bracket and ("[" in body or "]" in body)) or (self.tail and any(c in _ENDINGS + "\n" for c in body)):
            raise _Differ("databases disagree about where a string begins or ends")
        self._add(*(("literal", "") if quote == "'" else ("name", _lower(body))))
        self.at = i + 1

    def _backtick(self) -> None:
        end = self.text.find("`", self.at + 1)
        if end < 0:
            raise _Differ("a quote has no end")
        body = self.text[self.at + 1 : end]
        if not body or not _BACKTICKED.issuperset(body) or "--" in body or self._after_non_ascii():
            raise _Differ("a name in backticks has characters that are not letters or digits")
        self._add("name", _lower(body))
        self.at = end + 1

    def _after_non_ascii(self) -> bool:
        return self.at > 0 and self.text[self.at - 1] >= "\x80"

    def _dollar(self) -> None:
        n, named = 1, _letter(self._peek(1))
        while _digit(c := self._peek(n)) or (named and _variable(c)):
            n += 1
        after = self._peek(n)
        if n == 1 or after in ("$", "_") or _letter(after) or after >= "\x80":
            raise _Differ("PostgreSQL quotes strings with dollar signs, other databases do not")
        self._add("parameter", self.text[self.at : self.at + n])
        self.at += n

    def _number(self) -> None:
        n = 0

        def digits(n: int) -> int:
            while _digit(self._peek(n)):
                n += 1
            return n

        if self._peek(0) == "0" and self._peek(1) in ("x", "X"):
            n = 2
            while _digit(c := self._peek(n)) or "a" <= c <= "f" or "A" <= c <= "F":
                n += 1
        else:
            n = digits(n)
            if self._peek(n) == ".":
                n = digits(n + 1)
            if self._peek(n) in ("e", "E"):
                sign = 1 if self._peek(n + 1) in ("+", "-") else 0
                if _digit(self._peek(n + 1 + sign)):
                    n = digits(n + 1 + sign)
        c = self._peek(n)
        if c in ("_", "$") or _letter(c) or c >= "\x80":
            raise _Differ(
                "letters follow a number without a space: some databases read a number and a word, others a name")
        self._add("number", "")
        self.at += n

    def _plain_word(self) -> None:
        text, end = self.text, self.at
        while end < len(text):
            c = text[end]
            if c < "\x80":
                if not (c in "_$" or _letter(c) or _digit(c)):
                    break
            else:
                category = unicodedata.category(c)
                if not (category[0] == "L" or category in ("Nd", "Mn", "Mc")) or any(
                    a <= ord(c) <= b for a, b in _FOLDABLE):
                    raise _Differ("a character outside of strings is a space or a letter to some databases only")
            end += 1
        self._add("word", _lower(text[self.at : end]))
        self.at = self.word = end

    def _punctuation(self, c: str, after: str) -> None:
        self.depth += (c == "(") - (c == ")")
        if self.depth > _MAX_DEPTH:
            raise _Differ("parentheses are nested too deep")
        if c == ";" and self.bracket:
            raise _Differ("a semicolon between brackets")
        if c == ":" and after == "=":
            raise _Differ(":= assigns a value")
        if c == "." and after == ".":
            raise _Differ("two dots in a row")
        symbol = "::" if c == ":" and after == ":" else c
        self._add("symbol", symbol)
        self.at += len(symbol)

    def _operator(self) -> None:
        text, end = self.text, self.at
        while end < len(text) and text[end] in _OPERATOR:
            if end > self.at:
                if text[end] == "#" or text.startswith(("--", "/*"), end):
                    break
                after = text[end + 1 : end + 2]
                if text[end] == "@" and text[end - 1] != "@" and after and (_variable(after) or after == "@"):
                    break
            end += 1
        run = text[self.at : end]
        while len(run) > 1 and run not in _OPERATORS and run[-1] in "+-?":
            run = run[:-1]
        if run not in _OPERATORS:
            raise _Differ(f"the operator {run[:20]} is not one that databases share")
        if run[0] == "#":
            self.tail |= _HASH
            if self.bracket:
                raise _Differ("a comment begins between brackets")
        self._add("symbol", run)
        self.at += len(run)


@dataclass
class _Frame:
    role: str = "group"  # group, call or columns
    cte: str = ""  # expected, named, defined or queried: a position in a list of common table expressions


_NONE = Token("", "", 0, False)


@dataclass
class _Walk:
    """A walk over one statement that looks for a reason why it may do more than read."""

    tokens: list[Token]
    frames: list[_Frame] = field(default_factory=lambda: [_Frame()])
    next: str = "group"  # the role of the next parenthesis

    def run(self) -> str:
        self.words = words()
        self.begin = next((i for i, t in enumerate(self.tokens) if not self._is(i, "(")), 0)
        first = self._at(self.begin)
        if first.kind != "word" or first.text not in self.words["reading"]:
            return "a statement that reads begins with SELECT, WITH, VALUES, TABLE, SHOW, DESCRIBE or EXPLAIN"
        for i in range(len(self.tokens)):
            if reason := self._step(i):
                return reason
        return "a parenthesis is not closed" if len(self.frames) != 1 else ""

    def _at(self, i: int) -> Token:
        return self.tokens[i] if 0 <= i < len(self.tokens) else _NONE

    def _is(self, i: int, text: str) -> bool:
        t = self._at(i)
        return t.kind == "symbol" and t.text == text

    def _is_word(self, i: int, *texts: str) -> bool:
        t = self._at(i)
        return t.kind == "word" and t.text in texts

    def _step(self, i: int) -> str:
        t = self.tokens[i]
        if reason := self._list(i):
            return reason
        if self._is(i, "("):
            self.frames.append(_Frame(self.next))
            self.next = "group"
        elif self._is(i, ")"):
            if len(self.frames) == 1:
                return "a parenthesis is closed that was not opened"
            self.frames.pop()
            if self.frames[-1].cte == "defined":
                self.frames[-1].cte = "queried"
            if self._is(i + 1, "("):
                return "a parenthesis follows another one"
        elif self._is(i, "::"):
            return self._conversion(i + 1)
        elif t.kind == "word":
            return self._word(i)
        elif self._is(i + 1, "("):
            return self._before(i)
        elif self.frames[-1].role == "columns" and t.kind != "name" and not self._is(i, ","):
            return "a list of columns has more than names"
        return ""

    def _list(self, i: int) -> str:
        t, top = self.tokens[i], self.frames[-1]
        if top.cte == "expected":
            if self._is_word(i, "recursive"):
                return ""
            top.cte = "named"
            if t.kind not in ("word", "name") or self._is(i + 1, "."):
                return "WITH is not followed by a name"
        elif top.cte == "named":
            if self._is_word(i, "as"):
                top.cte = "defined"
            elif not self._is(i, "(") and not self._is(i, ")"):
                return "WITH is not followed by a name and AS"
        elif top.cte == "defined":
            if not self._is(i, "(") and t.text not in ("not", "materialized"):
                return "a common table expression is not a query in parentheses"
        elif top.cte == "queried":
            if self._is(i, ","):
                top.cte = "expected"
            elif self._is(i, "(") or self._is_word(i, "select", "values", "table"):
                top.cte = ""
            else:
                return "no SELECT follows the common table expressions"
        return ""

    def _word(self, i: int) -> str:
        t, before, after, words = self.tokens[i], self._at(i - 1), self._at(i + 1), self.words
        if self._member(i):
            if self._is(i + 1, "("):
                return f"functions with a schema, such as {t.text}, are not known to only read"
            if after.kind == "literal":
                return "a type with a schema may call a function"
            return "nextval changes a sequence" if t.text == "nextval" else ""
        pair = f"{before.text}_{t.text}" if before.kind == "word" else ""
        if self.frames[-1].cte == "named" and not self._is(i - 1, ")"):
            pass
        elif pair == "show_create" and i == 1 and not any(self._is(n, "(") for n in range(len(self.tokens))):
            pass
        elif pair in words["harmless"]:
            pass
        elif pair in words["pairs"]:
            return f"the statement has {before.text} {t.text}"
        elif t.text == "truncate" and self._is(i + 1, "("):
            pass
        elif t.text in words["changing"]:
            return f"the statement has {t.text}"
        elif t.text in words["starting"] and self._may_end_before(i) and not (
            t.text == "use" and after.text in ("index", "key")):
            return f"SQL Server begins another statement at {t.text}"
        elif before.text == ":" and before.kind == "symbol" and before.first and t.text in words["commands"]:
            return f"a line begins with a command of sqlcmd, :{t.text}"
        elif t.text == "go" and t.first and (after is _NONE or after.first):
            return "a line GO begins another batch"
        top = self.frames[-1]
        if t.text == "with" and (i == self.begin or self._is(i - 1, "(") or before.text == "explain"):
            top.cte = "expected"
        elif t.text == "select" and top.role == "call":
            top.role = "group"  # a query without parentheses around it
        elif t.text == "as" and top.role == "call":
            return self._conversion(i + 1)
        elif self._is(i + 1, "("):
            return self._before(i)
        elif after.kind == "literal":
            return self._before_text(i)
        return ""

    def _member(self, i: int) -> bool:
        return self._is(i - 1, ".") and (self._at(i - 2).kind in ("word", "name") or self._is(i - 2, "]"))

    def _may_end_before(self, i: int) -> bool:
        before = self._at(i - 1)
        if before.kind in ("symbol", ""):
            return before.text in (")", "]", "*", "?")
        if before.kind == "word":
            return self._member(i - 1) or before.text not in self.words["introducers"] | self.words["parentheses"]
        return True

    def _before(self, i: int) -> str:
        t, words, plain = self.tokens[i], self.words, self.tokens[i].kind == "word"
        keyword = plain and (t.text in words["introducers"] or t.text in words["parentheses"])
        top = self.frames[-1]
        after_as = self._is_word(i - 1, "as") and not self._member(i - 1) and top.role != "call"
        if t.kind == "symbol" and t.text != "]":
            pass
        elif top.cte == "named" or ((after_as or self._is(i - 1, ")"))
            and ((plain and not keyword) or t.kind == "name")):
            self.next = "columns"
        elif keyword:
            pass
        elif plain and (t.text in words["functions"] or t.text in words["types"]):
            self.next = "call"
        elif plain:
            return f"the function {t.text} is not known to only read"
        else:
            return "a call of a quoted name is not known to only read"
        return ""

    def _before_text(self, i: int) -> str:
        text = self.tokens[i].text
        is_distinct = text == "from" and self._is_word(i - 1, "distinct") and self._is_word(i - 2, "is", "not")
        if is_distinct or any(text in self.words[s] for s in ("introducers", "types", "prefixes")) or (
            text == "from" and self.frames[-1].role == "call"):
            return ""
        return f"a string follows {text}, which may be a conversion that calls a function"

    def _conversion(self, i: int) -> str:
        if self._at(i).kind == "word" and self._at(i).text in self.words["types"] and not self._is(i + 1, "."):
            return ""
        return "a conversion to a type that is not built in may call a function"
