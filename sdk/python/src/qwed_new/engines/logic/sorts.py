"""Inference of the sorts of variables: truth values, whole numbers, real numbers, texts."""

from __future__ import annotations

from qwed_new.engines.logic.dsl import (
    Atom,
    Form,
    Group,
    LogicSyntaxError,
    Tree,
    is_name,
    is_number,
    is_reserved,
    names_in,
)

BOOL, INT, REAL, TEXT, NUMBER = "Bool", "Int", "Real", "String", "Number"

_CONNECTIVES = frozenset({"AND", "OR", "NOT", "IMPLIES", "IFF", "XOR"})
_ORDER = frozenset({"GT", "LT", "GTE", "LTE"})
_ARITHMETIC = frozenset({"PLUS", "MINUS", "MULT", "DIV", "MOD", "POW", "NEG", "ABS"})
_NAMED = {
    "int": INT, "integer": INT, "real": REAL, "float": REAL, "bool": BOOL, "boolean": BOOL, "string": TEXT, "str": TEXT}


class SortError(ValueError):
    """A variable is used as two things that do not go together."""


class Sorts:
    """Union-find over variables and subterms; a class has one sort.

    Numbers that are combined with a decimal or a division are real. All others have the sort `numbers`, by default Int.
    """

    def __init__(self, numbers: str = INT) -> None:
        self._numbers = numbers
        self.assumed = False  # whether the sort of a variable was only assumed to be `numbers`
        self._parent: dict[str, str] = {}
        self._sort: dict[str, str] = {}
        self._declared: set[str] = set()  # variables that are declared Int
        self._compared: set[str] = set()
        self._terms = 0

    def infer(self, tree: Tree) -> None:
        """Infer the sorts of variables from their use in a formula."""
        self._want(self._walk(tree, {}), BOOL)
        for key in self._declared:
            if self._sort[self._root(key)] == REAL:
                name = key.split("#")[0]
                raise LogicSyntaxError(f"{name} is declared Int and is used with real numbers: declare it Real")

    def of(self, name: str) -> str:
        """Return the sort of a variable. Without other information, a compared variable is a number, and any other is
        Bool."""
        sort = self._sort.get(self._root(name))
        if sort is None:
            if not any(self._root(c) == self._root(name) for c in self._compared):
                return BOOL
            sort = NUMBER
        self.assumed |= sort == NUMBER
        return self._numbers if sort == NUMBER else sort

    def _root(self, key: str) -> str:
        self._parent.setdefault(key, key)
        while self._parent[key] != key:
            self._parent[key] = self._parent[self._parent[key]]
            key = self._parent[key]
        return key

    def _want(self, key: str, sort: str) -> None:
        root = self._root(key)
        self._sort[root] = _join(self._sort.get(root), sort, key)

    def _unite(self, a: str, b: str) -> None:
        x, y = self._root(a), self._root(b)
        if x == y:
            return
        sort = self._sort.get(y)
        self._parent[y] = x
        if sort:
            self._sort[x] = _join(self._sort.get(x), sort, a)

    def _fresh(self) -> str:
        self._terms += 1
        return f"#{self._terms}"

    def _walk(self, tree: Tree, bound: dict[str, str]) -> str:
        if isinstance(tree, Atom):
            return self._atom(tree.text, bound)
        if isinstance(tree, Group):
            return self._group(tree, bound)
        if tree.head in ("FORALL", "EXISTS"):
            return self._quantifier(tree, bound)
        keys = [self._walk(a, bound) for a in tree.arguments]
        result = self._fresh()
        if tree.head in _CONNECTIVES:
            for key in keys:
                self._want(key, BOOL)
            self._want(result, BOOL)
        elif tree.head in _ORDER or tree.head in ("EQ", "NEQ", "DISTINCT", "IN"):
            for key in keys:
                self._unite(keys[0], key)
            self._compared.add(keys[0])
            if tree.head in _ORDER:
                self._want(keys[0], NUMBER)
            self._want(result, BOOL)
        elif tree.head in _ARITHMETIC:
            for key in keys:
                self._unite(result, key)
            self._want(result, REAL if tree.head == "DIV" else INT if tree.head == "MOD" else NUMBER)
        elif tree.head == "ITE":
            if len(keys) != 3:
                raise LogicSyntaxError("ITE takes a condition and two values")
            self._want(keys[0], BOOL)
            self._unite(keys[1], keys[2])
            return keys[1]
        return result

    def _atom(self, text: str, bound: dict[str, str]) -> str:
        if is_number(text):
            key = self._fresh()
            self._want(key, REAL if any(c in text for c in ".eE") else NUMBER)
            return key
        if text.startswith('"'):
            key = self._fresh()
            self._want(key, TEXT)
            return key
        if text.lower() in ("true", "false"):
            key = self._fresh()
            self._want(key, BOOL)
            return key
        if not is_name(text):
            kind = "a reserved word" if is_reserved(text) else "neither an operator nor a name nor a number"
            raise LogicSyntaxError(f"{text!r} is {kind}")
        return bound.get(text, text)

    def _group(self, tree: Group, bound: dict[str, str]) -> str:
        head = tree.items[0]
        if len(tree.items) == 1:
            return self._walk(head, bound)
        word = head.text if isinstance(head, Atom) else "a list"
        raise LogicSyntaxError(f"{word!r} is not an operator of the language")

    def _quantifier(self, tree: Form, bound: dict[str, str]) -> str:
        if len(tree.arguments) != 2:
            raise LogicSyntaxError(f"{tree.head} takes its variable(s) and a formula")
        inner = dict(bound)
        for name, sort in quantified(tree.arguments[0]):
            inner[name] = f"{name}#{id(tree)}"
            if name not in names_in(tree.arguments[1]):
                raise LogicSyntaxError(f"{name!r} is quantified and is not used in the formula")
            if sort:
                self._want(inner[name], sort)
            if sort == INT:
                self._declared.add(inner[name])
        self._want(self._walk(tree.arguments[1], inner), BOOL)
        result = self._fresh()
        self._want(result, BOOL)
        return result

    def of_bound(self, name: str, quantifier: Form) -> str:
        """The sort of a quantified variable."""
        return self.of(f"{name}#{id(quantifier)}")


def quantified(tree: Tree) -> list[tuple[str, str | None]]:
    """The variables of a quantifier with the sorts that are written: `x`, `(x y)`, `((x Int) (y Real))`, `(x Int)`."""
    if isinstance(tree, Atom):
        items: tuple[Tree, ...] = (tree,)
    elif isinstance(tree, Group):
        items = tree.items
    else:
        raise LogicSyntaxError("a quantifier's variables are names")
    atoms = [i.text for i in items if isinstance(i, Atom)]
    if len(atoms) == len(items) == 2 and atoms[1].lower() in _NAMED:
        return [(atoms[0], _NAMED[atoms[1].lower()])]
    out: list[tuple[str, str | None]] = []
    for item in items:
        if isinstance(item, Atom) and is_name(item.text):
            out.append((item.text, None))
        elif isinstance(item, Group) and len(item.items) == 2 and all(isinstance(i, Atom) for i in item.items):
            name, sort = (i.text for i in item.items if isinstance(i, Atom))
            if sort.lower() not in _NAMED:
                raise LogicSyntaxError(f"the sort {sort!r} is not Int, Real, Bool or String")
            out.append((name, _NAMED[sort.lower()]))
        else:
            raise LogicSyntaxError("a quantifier's variables are names")
    names = [name for name, _ in out]
    if len(set(names)) < len(names) or any(name.lower() in _NAMED for name in names):
        raise LogicSyntaxError(
            "a quantifier's variables are different names, each with a sort as in ((x Int) (y Real))")
    return out


def _join(a: str | None, b: str, key: str) -> str:
    if a is None or a == b:
        return b
    numbers = {a, b} <= {INT, REAL, NUMBER}
    if numbers:
        return REAL if REAL in (a, b) else INT
    name = key.split("#")[0]
    raise SortError(f"{name or 'a term'} is used as {a} and as {b}")
