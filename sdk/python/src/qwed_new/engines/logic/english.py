"""Statements in a small, fixed English: sentences are split at their connectives, and clauses.py reads the rest.

A clause that is not read is one proposition, named by its normalised text. Two texts are the same proposition only if
they are equal, so that nothing follows by resemblance. Such a proposition can prove something, but it refutes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Any

from qwed_new.engines.logic import first_order, lexicon
from qwed_new.engines.logic.clauses import Clauses, NotRead
from qwed_new.engines.logic.coordination import DISTRIBUTIVE
from qwed_new.engines.logic.dsl import Atom, Form, LogicSyntaxError, Tree, names_in, parse
from qwed_new.engines.logic.infix import parse_infix
from qwed_new.limits import bounded_text

MAX_TEXT = 5_000

_SPLITS: tuple[tuple[str, str], ...] = (  # the first match wins: the pattern, and what its groups make
    (r"^if (.+?),? then (.+)$", "IMPLIES"),
    (r"^(?:if|provided that|assuming that|supposing that|given that|as long as) ([^,]+), (.+)$", "IMPLIES"),
    (r"^(.+?),? (?:if and only if|exactly when|just in case|iff|is equivalent to) (.+)$", "IFF"),
    (r"^(.+?) (?:implies that|implies|entails that|entails) (.+)$", "IMPLIES"),
    (r"^only if (.+?),? (?:does|do|will|can) (.+)$", "UNREAD"),
    (r"^(.+?),? only if (.+)$", "IMPLIES"),
    (r"^unless (.+?), (.+)$", "OR"),
    (r"^(.+?),? unless (.+)$", "OR"),
    (r"^(?:whenever|when|every time|each time) (.+?), (.+)$", "IMPLIES"),
    (r"^(.+?),? (?:if|whenever|when|provided that|as long as|assuming that) (.+)$", "CONVERSE"),
    (r"^(?:it is not the case that|it is false that|it is not true that|it can not be (?:true|the case) that) (.+)$",
        "NOT"),
    (r"^(?:it is the case that|it is true that|it holds that) (.+)$", "SAME"),
    (r"^either (.+?),? or (?:else )?(.+?),? but not both$", "XOR"),
    (r"^(.+?),? or (?:else )?(.+?),? but not both$", "XOR"),
    (r"^not both (.+?) and (.+)$", "NAND"),
    (r"^neither (.+?) nor (.+)$", "NOR"),
    (r"^(?:either )?(.+?), or else (.+)$", "OR"),
    (r"^at least one of (.+?) and (.+)$", "ANY"),
    (r"^(?:although|though|even though) ([^,]+), (.+)$", "AND"),
    (r"^(.+?),? (?:although|even though|whereas) (.+)$", "AND"),
    (r"^(?:since|because) ([^,]+), (.+)$", "BECAUSE"),
    (r"^(.+?),? (?:because|since) ([^,]+)$", "CAUSED"),
)
_COORDINATED: tuple[tuple[str, str], ...] = (  # tried after a clause was not read as a whole
    (r"^(?:either )?(.+?),? or (?:else )?(.+)$", "OR"),
    (r"^(?:both )?(.+?),? (?:and|but) (?:also )?(.+)$", "AND"),
)
_SUBJUNCTIVE = re.compile(r"\bif\b.*\b(?:would|could|might)\b|\b(?:would|could|might)\b.*\bif\b")
_CAUSAL = ("BECAUSE", "CAUSED")
_DENIALS = frozenset("not never no nobody nothing none neither only".split())
_DENIED = "what is denied, one statement or both, is not clear: write a statement for each, or (NOT (AND p q))"
# English with two readings, and what to write instead.
_TWO_READINGS = (
    (
        re.compile(
            r"^(?:all|every|each|any|everyone|everything) .*?\b(?:are|is|can|must|may|will|should|has|have|do"
            r"|does) not "),
        "'all … are not …' may mean none or not all: write 'no … are …' or 'not all … are …'",
    ),
    (
        re.compile(
            r"^it (?:is (?:not the case|false|not true)|can not be (?:true|the case)) that .+ (?:and|or|if|unless) "),
        _DENIED,
    ),
    (re.compile(r"^not (?!both )\w+ \w+.* (?:and|or) "), _DENIED),
    (
        re.compile(r"^(?!if |neither |not both ).+ (?:and .+ or|or .+ and) "),
        "'and' and 'or' stand together without parentheses: write (OR p (AND q r))",
    ),
)
_NOT_ALL = re.compile(r"^not (all|every|everyone|everything)\b(.*)$")
_SOMEBODY = re.compile(
    r"^if (?:(someone|anyone|a person)|(something|anything)|an? (\w+)) (.+?)(?:, then|,| then) "
    r"(?:he|she|they|it|that \w+) (.+)$"
)
_OF_ONE = re.compile(r"^if ([\w-]+) ([^,]+?)(?:, then|,| then) (?:he|she) (.+)$")
_EITHER_OF_ONE = re.compile(r"^(?:either )?([\w-]+) ([^,]+?),? or (?:he|she) (.+)$")
_NEITHER_OBJECT = re.compile(r"^(.+?) neither (.+?) nor (.+)$")
_SEVERAL = re.compile(r"^((?:[\w-]+, )*[\w-]+,? and [\w-]+) are ([\w-]+)$")
# `cats and dogs are mammals`
_KINDS = re.compile(r"^(?:both )?([\w-]+) and ([\w-]+) (.+)$")
_TWO_NAMES = re.compile(r"^([\w-]+) and ([\w-]+) (both )?([\w-]+)(.*)$")
_NEITHER_VERB = re.compile(r"^([\w-]+) neither (.+) nor (.+)$")
_TOGETHER_WORDS = frozenset("together other another same different each jointly".split())
_DETERMINERS = frozenset("a an the some any one no this that these those my your our his her its their".split())
_IRREGULAR = frozenset("are were do".split())
_NOT_ONLY = re.compile(r"^(.+? (?:is|are|was|were)) not only (.+?),? but(?: also)? (.+)$")
_CLAUSE_STARTS = frozenset("i you he she it we they the my your our this that everyone nobody no all every".split())
_LETTER = re.compile(r"^([a-z]\w?) is (not )?(true|false)$")


class Statements:
    """Reads the statements of an argument, which share names and propositions, and compiles them together."""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self._spelt: dict[str, str] = {}
        self._clauses = Clauses()
        self._clauses.names = _names(texts)
        self._clauses.verbs = _verbs(texts, self._clauses.names)
        self._clauses.vocabulary = {
            lexicon.base_form(w) for t in texts if isinstance(t, str) for w in re.findall(r"[^\W\d_]+", t.lower())}
        self.propositions: list[str] = []
        self.unread: dict[str, str] = {}  # the propositions that the grammar did not read, and why

    def read(self, text: str) -> Tree:
        """Return the tree of one statement."""
        text = bounded_text(text, "statement", MAX_TEXT).strip()
        if not text:
            raise LogicSyntaxError("a statement is empty")
        if text.startswith("(") and (tree := _quietly(parse, text)) and not isinstance(tree, Atom):
            if isinstance(tree, Form):
                return tree
        if tree := _quietly(parse_infix, text):
            self._one_spelling(text)
            return tree
        return self._english(_normalise(text), 0)

    def _one_spelling(self, formula: str) -> None:
        """Refuse names of formulas that may be one or two: they differ in capitals or in a qualifier only."""
        for name in re.findall(r"[^\W\d][\w.]*", formula):
            if self._spelt.setdefault(name.lower(), name) != name:
                other = self._spelt[name.lower()]
                raise LogicSyntaxError(f"{other!r} and {name!r} differ in capitals only: write one name one way")
        for name in self._spelt:
            if "." in name and (last := name.rpartition(".")[2]) in self._spelt:
                raise LogicSyntaxError(f"{name!r} and {last!r} may be one name or two: write the qualifier of both")

    def _english(self, text: str, depth: int) -> Tree:
        if depth > 40:
            raise LogicSyntaxError("a statement is nested too deep")
        for pattern, advice in _TWO_READINGS:
            if pattern.search(text):
                raise LogicSyntaxError(advice)
        if _SUBJUNCTIVE.search(text):
            return self._proposition(text, NotRead("'would' in a conditional"))
        if match := _NOT_ALL.match(text):
            return Form("NOT", (self._english(match[1] + match[2], depth + 1),))
        if match := _SOMEBODY.match(text):
            try:
                return self._clauses.conditional(match[1] or "", match[3] or "", match[4], match[5])
            except NotRead as error:
                return self._proposition(text, error)
        if match := _NOT_ONLY.match(text):
            return Form("AND", tuple(self._english(f"{match[1]} {match[i]}", depth + 1) for i in (2, 3)))
        text = self._with_name(text)
        if parts := self._distributed(text):
            head, texts = parts
            return Form("AND", tuple(
                Form("NOT", (t,)) if head == "NOR" else t for t in (self._english(t, depth + 1) for t in texts)))
        if conditional := self._without_comma(text):
            return Form("IMPLIES", tuple(self._english(t, depth + 1) for t in conditional))
        for pattern, head in _SPLITS:
            if (match := re.match(pattern, text)) and (head not in _CAUSAL or self._is_causal(head, *match.groups())):
                return self._joined(head, [g.strip(" ,") for g in match.groups()], text, depth)
        if text.startswith("not ") and not text.startswith("not a single "):
            return Form("NOT", (self._english(text[4:], depth + 1),))
        return self._clause(text, depth)

    def _is_causal(self, head: str, first: str, second: str) -> bool:
        """Report whether `since` or `because` is between two clauses, of which the one about the effect denies nothing:
        what `not` denies in `he did not come because of it` is not clear."""
        effect = second if head == "BECAUSE" else first
        return not set(effect.split()) & _DENIALS and _has_verb(first) and _has_verb(second)

    def _with_name(self, text: str) -> str:
        if (match := _EITHER_OF_ONE.match(text)) and match[1] in self._clauses.names and not set(
            re.sub(r"\b(?:in|at|from|to) [\w-]+", "", f"{match[2]} {match[3]}").split()) & (
                self._clauses.names | lexicon.PRONOUNS):
            return f"either {match[1]} {match[2]} or {match[1]} {match[3]}"
        return self._condition_with_name(text)

    def _condition_with_name(self, text: str) -> str:
        """Return `if Bob studies, he passes` with the name, if the condition has one name only, in place of he or
        she."""
        match = _OF_ONE.match(text)
        names = self._clauses.names
        others = re.sub(r"\b(?:in|at|from) [\w-]+", "", f"{match[2]} {match[3]}") if match else ""
        if not match or match[1] not in names or any(w in names for w in re.findall(r"[\w-]+", others)):
            return text
        if set(re.findall(r"\w+", match[2] + " " + match[3])) & lexicon.PRONOUNS:
            return text
        return f"if {match[1]} {match[2]}, {match[1]} {match[3]}"

    def _without_comma(self, text: str) -> tuple[str, str] | None:
        """Return the clauses of `if it rains we stay home`, if there is one place only at which two clauses meet."""
        words = text.split()
        if words[0] != "if" or "," in text or "then" in words or not 5 <= len(words) <= 20:
            return None
        found = []
        for at in range(3, len(words) - 1):
            starts = words[at] in _CLAUSE_STARTS or words[at] in self._clauses.names
            if starts and words[at - 1] not in lexicon.PREPOSITIONS and all(
                self._reads(" ".join(part)) for part in (words[1:at], words[at:])):
                found.append((" ".join(words[1:at]), " ".join(words[at:])))
        return found[0] if len(found) == 1 else None

    def _reads(self, clause: str) -> bool:
        """Report whether the grammar reads a clause. What reading it notes is taken back."""
        kept = {n: (v.copy() if isinstance(v, set) else v) for n, v in vars(self._clauses).items()}
        try:
            self._clauses.read(clause)
        except LogicSyntaxError:
            return False
        finally:
            vars(self._clauses).update(kept)
        return True

    def _distributed(self, text: str) -> tuple[str, list[str]] | None:
        """Return the clauses of `Ann and Bob are doctors`, which holds of each because the noun is about one thing, and
        of `Ann likes neither tea nor milk`, which denies each."""
        names = self._clauses.names
        if (match := _NEITHER_OBJECT.match(text)) and match[1].split()[0] in names and _has_verb(match[1]):
            return "NOR", [f"{match[1]} {match[i]}" for i in (2, 3)]
        if (match := _NEITHER_VERB.match(text)) and match[1] in names:
            return "NOR", [f"{match[1]} {match[i]}" for i in (2, 3)]
        if (match := _KINDS.match(text)) and match[2] not in names and all(
            lexicon.is_plural(match[i]) and match[i] not in lexicon.PRONOUNS for i in (1, 2)) and not (
            set(match[3].split()) & (lexicon.OF_SEVERAL | lexicon.OF_KINDS | lexicon.STRANGE)) and (
            match[3].split()[0] not in lexicon.PREPOSITIONS):
            return "AND", [f"{match[i]} {match[3]}" for i in (1, 2)]
        if (match := _TWO_NAMES.match(text)) and {match[1], match[2]} <= names and match[4] not in lexicon.STRANGE:
            verb = match[4]
            if verb == "are" and match[5].startswith(" both "):
                return "AND", [f"{match[i]} is {match[5][6:]}" for i in (1, 2)]
            shared = match[5].split()[:1]  # one house may belong to both
            alone = match[3] or (lexicon.PASTS.get(verb, verb) in DISTRIBUTIVE and " and " not in match[5] and not (
                shared and (shared[0] in _DETERMINERS or shared[0] in lexicon.QUANTITIES)))
            if alone and verb not in _IRREGULAR and not set(match[5].split()) & _TOGETHER_WORDS:
                verb = verb if lexicon.is_past(verb) or verb in lexicon.MODALS else lexicon.third_person(verb)
                return "AND", [f"{match[i]} {verb}{match[5]}" for i in (1, 2)]
        if (match := _SEVERAL.match(text)) and lexicon.is_plural(match[2]) and match[2] not in lexicon.OF_SEVERAL:
            subjects = re.split(r", and |, | and ", match[1])
            if all(s in names for s in subjects):
                return "AND", [f"{s} is a {lexicon.singular(match[2])}" for s in subjects]
        return None

    def _joined(self, head: str, texts: list[str], text: str, depth: int) -> Tree:
        if head == "UNREAD":
            return self._proposition(text, NotRead("'only if' before an inverted clause"))
        if head in ("NOR", "NAND", "XOR", "ANY") and (shared := self._shared(texts, depth)):
            parts = shared
        else:
            parts = [self._english(t, depth + 1) for t in texts]
        if head == "SAME":
            return parts[0]
        if head in _CAUSAL:  # both clauses hold, and more, which follows from nothing else
            return Form("AND", (*parts, Form("CAUSE", (Atom(text),))))
        if head == "ANY":
            return Form("OR", tuple(parts))
        if head == "CONVERSE":
            return Form("IMPLIES", (parts[1], parts[0]))
        if head == "NOR":
            return Form("AND", tuple(Form("NOT", (p,)) for p in parts))
        if head == "NAND":
            return Form("NOT", (Form("AND", tuple(parts)),))
        return Form(head, tuple(parts))

    def _clause(self, text: str, depth: int) -> Tree:
        if (len(text) <= 2 or not text.isalpha()) and (tree := _quietly(parse_infix, text)):
            return tree
        if match := _LETTER.match(text):
            tree = Atom(match[1])
            return tree if (match[3] == "true") == (not match[2]) else Form("NOT", (tree,))
        try:
            return self._clauses.read(text)
        except NotRead as error:
            why = error
        strange = sorted(set(text.split()) & lexicon.UNREAD)
        if not strange:
            for pattern, head in _COORDINATED:
                if match := re.match(pattern, text):
                    texts = [g.strip(" ,") for g in match.groups()]
                    if not _has_verb(texts[0]):
                        if head == "AND" and not text.startswith("both "):
                            raise LogicSyntaxError(
                                "what is said of several together may not hold of each: write a statement for each")
                        if shared := self._shared(texts, depth, head == "AND"):
                            return Form(head, tuple(shared))
                    if not all(_has_verb(t) or len(t) <= 2 or self._reads(t) for t in texts):
                        break
                    return Form(head, tuple(self._english(t, depth + 1) for t in texts))
        return self._proposition(text, NotRead(", ".join(map(repr, strange))) if strange else why)

    def _shared(self, texts: list[str], depth: int, both: bool = False) -> list[Tree] | None:
        """Read `John` and `Mary is at home` as two clauses with the same verb phrase; None if the first is a clause."""
        if _has_verb(texts[0]):
            return None
        words = texts[1].split()
        places = range(2 if words[0] in ("the", "a", "an", "my", "your") else 1, len(words))
        at = next((i for i in places if _has_verb(words[i])), 0) or next(
            (i for i in places if words[i].endswith("s") or lexicon.is_past(words[i])), 0)
        if both and at != 1 and words[0] in self._clauses.names and not _has_verb(words[1]):  # Sam and Max like it
            at, words[1] = 1, lexicon.third_person(words[1])
        if not at:
            raise LogicSyntaxError(f"the verb of {texts[0]!r} and {texts[1]!r}")
        return [self._english(f"{subject} {' '.join(words[at:])}", depth + 1)
            for subject in (texts[0], " ".join(words[:at]))]

    def _proposition(self, text: str, why: NotRead) -> Tree:
        if symbols := re.findall(r"[^\w\s'.,%$€£°:-]", text):
            raise LogicSyntaxError(f"{symbols[0]!r} in {text[:60]!r}")
        self.unread[text] = str(why)
        return Form("PROP", (Atom(text),))

    def compile(self, trees: Sequence[Tree], numbers: str) -> tuple[list[Any], list[Any], bool]:
        """Return the Z3 terms of statements, conditions that their divisors are not zero, and whether a sort was
        assumed."""
        compiled = first_order.compile_all(trees, numbers, self._clauses.persons)
        self.propositions = compiled.symbols
        return compiled.terms, compiled.conditions, compiled.assumed

    def two_persons(self) -> list[tuple[str, Tree]]:
        """Return that persons with two names are two, with its text, if `than everyone` is used, which excludes
        oneself, and no statement identifies two names."""
        if not self._clauses.others or self._clauses.identified:
            return []
        named = sorted(p for p in self._clauses.persons if p.split()[0] in self._clauses.names)
        return [(f"{a} is not {b}", Form("NOT", (Form("IS", (Atom(a), Atom(b))),)))
            for a, b in combinations(named[:12], 2)]

    def assumptions(self, trees: Sequence[Tree]) -> list[tuple[str, Tree]]:
        """Return what the statements take for granted, with its text: that two names are two persons, and that `this
        book` is a book, if a statement is about books."""
        named = {n for t in trees for n in names_in(t)}
        definite = [(f"{text} is a {text.partition(' ')[2]}", tree)
            for text, tree in sorted(self._clauses.definite.items()) if names_in(tree) - {text} <= named]
        return [*self.two_persons(), *definite]

    def kinds(self) -> set[str]:
        """Return the kinds that a reader takes to exist, because a statement is about them in general."""
        return self._clauses.kinds

    def doubts(self, trees: Sequence[Tree]) -> list[str]:
        """Return why a counterexample may rest on words that were not understood; premises come first, the conclusion
        last."""
        found = [f"{why} is not understood" for text, why in self.unread.items() if _is_doubtful(text)]
        if self._clauses.pronouns:
            found.append(f"{min(self._clauses.pronouns)!r} may be anybody or anything")
        return [*found, *first_order.unlike(trees)]


def _is_doubtful(text: str) -> bool:
    """Report whether an unread proposition has words of logic, so that its text alone does not show what it means."""
    return bool(
        set(re.findall(r"[\w-]+", text)) & (lexicon.STRANGE | lexicon.PRONOUNS | lexicon.MODALS)) or not _has_verb(text)


def _has_verb(text: str) -> bool:
    words = text.split()
    if len(words) > 1 and words[0] in ("i", "you", "we", "they") and words[1] not in ("and", "or"):
        return True
    auxiliary = lexicon.COPULAS | lexicon.MODALS | {"has", "have", "had", "does", "do", "did"}
    return any(w in auxiliary for w in words) or any(
        lexicon.is_past(w) or (w.endswith("s") and not w.endswith(("ss", "us", "is"))) for w in words[1:]
    )


def _names(texts: Sequence[str]) -> set[str]:
    """Return the words that are only written with a capital letter."""
    capital: set[str] = set()
    small: set[str] = set()
    for text in texts:
        for word in re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", text if isinstance(text, str) else ""):
            (capital if word[0].isupper() else small).add(word.lower())
    return capital - small - lexicon.STRANGE - lexicon.PRONOUNS - {"the", "a", "an", "it", "my", "your", "our", "only"}


def _verbs(texts: Sequence[str], names: set[str]) -> set[str]:
    """Return the base forms of verbs in the third person that follow a name."""
    words = [t.lower().split() for t in texts if isinstance(t, str)]
    return {lexicon.base_form(b) for line in words for a, b in pairwise(line)
        if a in names and b.endswith("s") and not b.endswith(("ss", "us", "is")) and b.isalpha()} - {"have", "do"}


def _quietly(read: Any, text: str) -> Tree | None:
    try:
        return read(text)
    except LogicSyntaxError:
        return None


def _normalise(text: str) -> str:
    text = re.sub(r"[’‘`]", "'", text.lower())
    text = re.sub(r"\b(every|some|any)body\b", r"\1one", text)
    text = re.sub(r"^(?:whoever|he who|she who|those who|anybody who)\b", "everyone who", text)
    text = re.sub(r"\beven (?=numbers?\b|integers?\b)", "even-", text)
    text = re.sub(r"\bcan't\b|\bcannot\b", "can not", text)
    text = re.sub(r"\bwon't\b", "will not", text)
    text = re.sub(r"n't\b", " not", text)
    text = re.sub(r"\b(he|she|it|that|there)'s\b", r"\1 is", text)
    text = re.sub(r"\b(they|we|you)'re\b", r"\1 are", text)
    text = re.sub(r"^every one of\b", "each of", text)
    text = re.sub(r"^all that (?=\w+s\b)", "everything that ", text)
    text = re.sub(r"^all who\b", "everything that", text)
    text = re.sub(r"^(?:none|nobody|no one) but (?=\w+s\b)", "only ", text)
    text = re.sub(r"^none but\b", "nobody but", text)
    text = re.sub(r"^neither of (?=the \w+ )", "none of ", text)
    text = re.sub(r"^both of (?=the \w+ )", "all of ", text)
    text = re.sub(r"^([\w-]+) either (?=\w+(?:s|ed)\b.* or )", r"\1 ", text)
    text = re.sub(r"(?<=\w) (?:too|as well)(?=[.!]*$)", "", text.strip())
    text = re.sub(r"^(?:therefore|thus|hence|so|consequently|then|clearly|obviously),? ", "", text.strip())
    return " ".join(text.rstrip(" .!").split())


_TITLES = frozenset("mr mrs ms dr st prof jr sr vs etc no inc co".split())


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    parts, start = [], 0
    for match in re.finditer(r"(\w{2,})[.!]\s+(?=[A-Z])", text):
        if match[1].lower() not in _TITLES:
            parts.append(text[start : match.end()].strip())
            start = match.end()
    return [*parts, text[start:]]
