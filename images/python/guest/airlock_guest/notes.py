"""Says why a program that ended well has probably left no result.

Loaded only then. The explanation is a guess from the program's syntax tree: it
changes nothing.
"""

import _ast

from airlock_guest.tree import FUNCTIONS, MOST_NODES, children, parse

_UNSET = "the code has not set `result`: write `result = "
_PLAIN = _UNSET + "…` where you print it"
_MAIN = ("main", "run", "execute", "start", "handler", "solve", "program")

# Members of the description of a call, in the forms that models write.
_TOOL = {"name", "tool", "tool_name", "toolName", "function"}
_ARGUMENTS = {"arguments", "args", "parameters", "params", "input"}

# What prints, or ends the program, and returns nothing to keep.
_PRINTING = {
    "print", "pprint", "exit", "quit", "info", "debug", "warning", "error", "critical", "exception", "log", "write",
    "writelines",
    "flush", "dump", "close", "sleep", "append", "extend", "update", "sort", "add", "insert", "remove", "join", "start",
    "seed",
}  # fmt: skip


def note(code):
    """Return one sentence on code that set no result."""
    try:
        tree = parse(code)
        for guess in (_wrapped, _uncalled_function, _local_result, _dropped_value, _other_variable, _not_printed):
            sentence = guess(tree)
            if sentence:
                return sentence
    except Exception:  # if the code has broken the builtins, the plain sentence is used
        return _PLAIN
    return _PLAIN


def _walk(tree):
    todo = [tree]
    for _ in range(MOST_NODES):
        if not todo:
            return
        node = todo.pop()
        yield node
        todo += children(node)


def _wrapped(tree):
    """`{"code": "…"}`, `{"name": "read_file", "arguments": {…}}`, the program as one text in quotes"""
    only = tree.body[0] if len(tree.body) == 1 else None
    value = getattr(only, "value", None)
    if isinstance(value, _ast.Constant) and isinstance(value.value, str):
        return "the code is one text: send the program without quotes around it"
    keys = _keys_of(value)
    if "code" in keys:
        return 'the code is an object that is not used: send the value of "code" alone'
    first = value.elts[0] if isinstance(value, _ast.List) and value.elts else value
    keys = _keys_of(first)
    if isinstance(only, _ast.Expr) and keys & _TOOL and keys & _ARGUMENTS:
        from airlock_guest.hints_names import example

        return f"the code is the description of a call, not a program: {example(' '.join(_texts(first)))}"
    return ""


def _keys_of(node):
    return {getattr(key, "value", None) for key in getattr(node, "keys", None) or []}


def _texts(node):
    return [each.value for each in _walk(node) if isinstance(each, _ast.Constant) and isinstance(each.value, str)]


def _other_variable(tree):
    """`output = …` or `print(output)` as the last statement"""
    last = tree.body[-1] if tree.body else None
    if isinstance(last, _ast.Assign):
        names = last.targets
    elif isinstance(last, _ast.AnnAssign | _ast.AugAssign):
        names = [last.target]
    elif isinstance(last, _ast.Expr) and getattr(getattr(last.value, "func", None), "id", "") in ("print", "pprint"):
        names = last.value.args
    else:
        return ""
    if len(names) != 1 or not isinstance(names[0], _ast.Name):
        return ""
    return f"{_UNSET}{names[0].id}` at the end"


def _not_printed(tree):
    printed = {"print", "pprint", "write", "dump"}
    for node in _walk(tree):
        if getattr(node, "id", "") in printed or getattr(node, "attr", "") in printed:
            return ""
    return _UNSET + "…` at the end"


def _uncalled_function(tree):
    """`async def main(): …` and no `await main()`"""
    used = {node.id for node in _walk(tree) if isinstance(node, _ast.Name)}
    defined = [node for node in tree.body if isinstance(node, FUNCTIONS) and not node.decorator_list]
    uncalled = [node for node in defined if node.name not in used]
    if not uncalled:
        return ""
    function = next((node for node in uncalled if node.name in _MAIN), uncalled[-1])
    call = f"await {function.name}()" if isinstance(function, _ast.AsyncFunctionDef) else f"{function.name}()"
    return f"{function.name}() is never called: end with `result = {call}`"


def _local_result(tree):
    """`result = …` inside a function"""
    for function in _walk(tree):
        if isinstance(function, FUNCTIONS):
            for node in _walk(function):
                if isinstance(node, _ast.Name) and node.id == "result" and isinstance(node.ctx, _ast.Store):
                    call = f"await {function.name}()" if isinstance(
                        function, _ast.AsyncFunctionDef) else f"{function.name}()"
                    return (
                        f"`result` is a local variable of {function.name}(): return it and write "
                        f"`result = {call}`, or write `global result` in the function"
                    )
    return ""


def _shown(function):
    """Return how a function is written that is a member of something: `App().run`, `rows.copy`."""
    of = function.value if isinstance(function, _ast.Attribute) else None
    if isinstance(of, _ast.Name):
        return f"{of.id}.{function.attr}"
    if isinstance(of, _ast.Call) and isinstance(of.func, _ast.Name):
        return f"{of.func.id}(…).{function.attr}"
    return f"….{function.attr}" if of is not None else "…"


def _dropped_value(tree):
    """A value as the last line, as in a notebook."""
    last = tree.body[-1] if tree.body else None
    while isinstance(last, _ast.If):  # if __name__ == "__main__"
        last = last.body[-1]
    if not isinstance(last, _ast.Expr):
        return ""
    value = last.value
    called = value.value if isinstance(value, _ast.Await) else value
    if isinstance(called, _ast.Call):
        name = getattr(called.func, "id", "")
        method = getattr(called.func, "attr", "")
        if (name or method) in _PRINTING:
            return ""
        if getattr(getattr(called.func, "value", None), "id", "") == "asyncio":
            return "the value of the last line is dropped: write `result = asyncio.run(main())`"
        what = f"{name or _shown(called.func)}(…)"
        await_ = "await " if isinstance(value, _ast.Await) else ""
        return f"the value of the last line is dropped: write `result = {await_}{what}`"
    if isinstance(called, _ast.Constant):
        return ""
    what = called.id if isinstance(called, _ast.Name) else "…"
    return f"the value of the last line is not the result: write `result = {what}`"
