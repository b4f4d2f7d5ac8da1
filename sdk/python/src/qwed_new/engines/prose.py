"""Whether a text is plain prose, so that it is not taken for a program because of an apostrophe or a semicolon."""

from __future__ import annotations

import ast
import re
from itertools import pairwise

# Marks of programs: calls, dunders, attribute chains, brackets, operators, semicolons at the end of a line.
_CODE = re.compile(
    r"__|\w\(|\w\[|\)\s*[.({]|[{}\[\]<>=\\`|~^]|[+*/]\s*\w+\s*\(|->|::|;[ \t]*(?:$|\n|\w+\s*\()|(?:^|\n)\s*[#@]\w|"
    r"(?<![A-Za-z.])[A-Za-z_]\w+\.[A-Za-z_]\w+(?!\.)\b|['\"]\s*[.,)]\s*['\"]|['\"]\s*\+"
)
# Words that programs have beside names: two of them in a row do not make a sentence.
_KEYWORDS = frozenset(
    "import from as def class return raise del pass yield lambda global nonlocal assert async await print exec eval "
    "let const var function new typeof void delete export default throw select insert update delete drop alter create "
    "truncate grant table where set into values echo sudo rm ls cd cat curl wget git chmod chown sh bash python pip "
    "npm".split()
)
# A sentence that retracts an adjacent sentence.
RETRACTED = re.compile(
    r"(?:not|no|nope|never|wrong|as if|yeah,? right|just kidding|kidding|psych|sike|hardly"
    r"|if only)\b[\w\s]{0,16}[.!…]*$", re.I)
_CONTRACTION = re.compile(r"[A-Za-z]n't\b|[A-Za-z]'(?:re|ll|ve)\b", re.I)
_CALL = re.compile(r"__|\w\((?!\))|[{}\[\]=\\`|]|(?:^|\n)\s*(?:import|from|exec|eval)\b")
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*['’]?")


def is_prose(text: str) -> bool:
    """Report whether a text is a sentence, or has two words in a row as no program has, and no mark of a program."""
    words = [w.strip(".,;:!?()\"'“”‘’…–—") for w in text.split()]
    if _CONTRACTION.search(text) and len(words) >= 6 and not _CALL.search(text) and sum(
        map(_is_plain, words)) > len(words) / 2 and not parses(text):
        return True  # a sentence that names a function or a module
    if _CODE.search(text):
        return False
    if _CONTRACTION.search(text) and text.count("'") % 2 and '"' not in text:
        return True  # as a program, it would have a text without an end
    if len(words) >= 4 and re.fullmatch(r"[A-Z].*[.!?]", text.strip(), re.S) and all(
        _WORD.fullmatch(w) for w in words if w):
        return True
    return any(_is_plain(a) and _is_plain(b) for a, b in pairwise(words))


def parses(text: str) -> bool:
    """Report whether a text is a program in Python."""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _is_plain(word: str) -> bool:
    return bool(_WORD.fullmatch(word)) and word.lower() not in _KEYWORDS and word not in (
        "in", "is", "not", "and", "or", "if", "else", "for")
