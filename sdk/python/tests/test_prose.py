"""Prose is not a program (issue 26.10)."""

from __future__ import annotations

import pytest

from qwed_new.engines.claims import verify
from qwed_new.engines.math_engine import verify_math
from qwed_new.engines.prose import is_prose

PROSE = """It's fine
It's fine.
That's all; thanks
I don't know
I can't open the file; please try again.
We import cars from Germany.
Import duties are high; exports aren't.
Let me know if it's fine.
let me know; it's urgent
The function of the heart is to pump blood.
The class starts at nine; don't be late.
He said "yes" and left.
She's the boss; he isn't.
Don't import; export!
John's car is red
You're right (as always).
O'Brien's report isn't ready; ask Ann.
Print the report, then sign it; it's due today.
From here on, it's easy.
While you wait, don't worry: it's free.
For men in uniform: it's free
Try this: it's good
The input: two numbers. It's simple.
'Twas brillig
The var is a unit of power; it's rarely used.
Delete the old file; it isn't needed.
If it's raining, take a cab; otherwise, walk.
Rock 'n' roll isn't dead
Don't compile lists; it's boring.
Is it 5 o'clock?
The evaluation isn't over.
const isn't a word; var isn't either
The system's down; we'll exec the plan.
Ann's and Bob's scores are 3 and 4; that's 7 in all.
e.g. this isn't code; i.e. it's a sentence.
Es ist 5 Uhr; das ist's.
Don't use os.system in production; it's dangerous.
Its open() method isn't documented here.
You shouldn't call subprocess.run there; it isn't safe.
L'été n'est pas fini; c'est août.""".split("\n")
CODE = [
    "__import__('os').system('id')", "2 + __import__('os').system('id')", "2+2=__import__('os').system('id')",
    "import os; os.system('id')", "eval('1')", "open('x').read()", "x = 'a'; print(x)",
    "exec('x'); y", "import os\nos.system('rm -rf /')", "().__class__.__base__.__subclasses__()", "lambda: 0",
    "os.system('id')", "print('hello world')", "subprocess.run(['ls'])",
]  # fmt: skip


@pytest.mark.row("P-007", "A-062")
@pytest.mark.parametrize("text", PROSE)
def test_prose_is_not_a_program(text: str) -> None:
    assert verify(text).status == "INCONCLUSIVE", verify(text)
    assert verify_math(text).status == "INCONCLUSIVE", verify_math(text)


@pytest.mark.parametrize("text", CODE)
def test_programs_are_not_prose(text: str) -> None:
    assert not is_prose(text)
    assert verify_math(text).status == "BLOCKED", verify_math(text)
    assert verify(text).status != "INCONCLUSIVE", verify(text)


@pytest.mark.parametrize("text", ["2 + 2 = 4; 3 = 3", "'a' = 'a'", "f'(x) = 2", "2\"", "`2+2`", "a;b"])
def test_marks_of_programs_alone_are_not_programs(text: str) -> None:
    assert verify_math(text).status in ("INCONCLUSIVE", "BLOCKED")
