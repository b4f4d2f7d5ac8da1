"""The regular expressions of the packages: the time of each grows at most with the square of the text."""

from __future__ import annotations

import importlib
import pkgutil
import re
import re._constants as kinds
import re._parser as parser
import time
from collections.abc import Iterator
from typing import Any

import pytest

import qwed_new
import qwed_sdk
from qwed_sdk.guards import config_guard

CHARACTERS = " a_1A'\"-./=,\n(x"
ARGUMENTS = {
    "curl": "-u ann:hunter22", "net": "/user:ann hunter22", "mysql": "-phunter22", "docker": "-p hunter22",
    "mongosh": "-p hunter22", "redis-cli": "-a hunter22", "openssl": "-k hunter22"}
REPEATS = (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT)


def patterns() -> dict[str, list[re.Pattern[Any]]]:
    """The compiled patterns of all modules, by module."""
    found: dict[str, list[re.Pattern[Any]]] = {}
    for package in (qwed_new, qwed_sdk):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            try:
                names = vars(importlib.import_module(module.name))
            except ImportError:  # an optional dependency
                continue
            if own := [p for value in names.values() for p in within(value)]:
                found[module.name] = own
    return found


def within(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from within(inner)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from within(inner)


def sample(items: Any) -> str:
    """A text that a part of a pattern matches, as short as possible."""
    return "".join(map(sample_of, items))


def sample_of(item: Any) -> str:
    kind, detail = item
    if kind is kinds.LITERAL:
        return chr(detail)
    if kind in (kinds.NOT_LITERAL, kinds.ANY, kinds.IN):
        return next((c for c in CHARACTERS if takes(item, c)), chr(detail[0][1]) if kind is kinds.IN and (
            detail[0][0] is kinds.LITERAL) else "")
    if kind is kinds.BRANCH:
        return sample(detail[1][0])
    if kind is kinds.SUBPATTERN:
        return sample(detail[3])
    if kind in REPEATS:
        return sample(detail[2]) * detail[0]
    return sample(detail) if kind is kinds.ATOMIC_GROUP else ""


def takes(item: Any, character: str) -> bool:
    """Report whether an item of a pattern matches one character."""
    kind, detail = item
    if kind is kinds.ANY:
        return True
    if kind in (kinds.LITERAL, kinds.NOT_LITERAL):
        return (chr(detail) == character) == (kind is kinds.LITERAL)
    classes = {"SPACE": character.isspace(), "WORD": character.isalnum() or character == "_",
        "DIGIT": character.isdigit()}
    hit = False
    for part, value in detail if kind is kinds.IN else ():
        if part is kinds.LITERAL:
            hit |= chr(value) == character
        elif part is kinds.RANGE:
            hit |= value[0] <= ord(character) <= value[1]
        elif part is kinds.CATEGORY:
            hit |= classes[str(value).rsplit("_", 1)[-1]] != ("NOT" in str(value))
    return hit != (kind is kinds.IN and detail[0][0] is kinds.NEGATE)


def pumped(items: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """For each repetition of a pattern: a text that leads to it, and a text that it repeats."""
    for kind, detail in items:
        if kind in REPEATS:
            repeated = list(detail[2])
            if detail[1] > 30:
                single = len(repeated) == 1 and repeated[0][0] in (kinds.IN, kinds.ANY, kinds.NOT_LITERAL)
                yield from ((before, unit) for unit in CHARACTERS if single and takes(repeated[0], unit))
                yield before, sample(repeated)
            yield from pumped(repeated, before)
        elif kind is kinds.BRANCH:
            for branch in detail[1]:
                yield from pumped(branch, before)
        elif kind in (kinds.SUBPATTERN, kinds.ATOMIC_GROUP):
            yield from pumped(detail[3] if kind is kinds.SUBPATTERN else detail, before)
        before += sample_of((kind, detail))


def seconds(pattern: re.Pattern[Any], text: str) -> float:
    """The processor time of a search."""
    subject = text.encode("utf-8") if isinstance(pattern.pattern, bytes) else text
    start = time.thread_time()
    pattern.search(subject)
    return time.thread_time() - start


def explodes(pattern: re.Pattern[Any], before: str, unit: str) -> bool:
    """Report whether four times the text takes far more than 16 times the time, in each of three tries. Times below the
    resolution of the clock count as equal."""
    small = large = 0.0
    for size in (20, 80, 320):
        text = before + unit * size + " \0"
        small, large = large, seconds(pattern, text)
        if large > 0.01 and large > 32 * max(small, 0.0001):
            return all(seconds(pattern, text) > 32 * max(small, 0.0001) for _ in range(2))
    return False


FOUND = patterns()


def test_the_patterns_are_found() -> None:
    assert sum(map(len, FOUND.values())) > 200


@pytest.mark.parametrize("module", FOUND)
def test_patterns_take_at_most_quadratic_time(module: str) -> None:
    for pattern in FOUND[module]:
        for before, unit in sorted(set(pumped(parser.parse(pattern.pattern, pattern.flags)))):
            assert not explodes(pattern, before, unit), f"{pattern.pattern!r} on {before!r} and {unit!r}"


@pytest.mark.parametrize(
    "repeated", ["curl ", "net use ", "mysql ", "docker login ", "mongosh ", "redis-cli ", "openssl "])
def test_a_command_that_is_repeated_is_searched_once(repeated: str) -> None:
    pattern = config_guard._COMPILED["PROGRAM_ARGUMENT"]
    small, large = (min(seconds(pattern, repeated * n) for _ in range(3)) for n in (500, 4000))
    assert large < 0.01 or large < 24 * small
    assert not pattern.search(repeated * 3) and pattern.search("echo; " + repeated * 2 + ARGUMENTS[repeated.split()[0]])
