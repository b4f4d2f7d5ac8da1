"""The analyser of JavaScript and TypeScript, on tree-sitter's trees."""

from __future__ import annotations

import re

import tree_sitter_javascript
import tree_sitter_typescript
from tree_sitter import Language, Node, Parser

from qwed_new.engines.code import javascript_policy as policy
from qwed_new.engines.code.findings import Finding, unique
from qwed_new.engines.code.javascript_names import Names, is_shown, unescape
from qwed_new.engines.code.trees import is_too_deep, text_of, walk

MAX_CODE = 1_000_000


def analyse(code: str, typescript: bool = False) -> list[Finding] | None:
    """Return the findings of a program, or None if it does not parse."""
    if len(code) > MAX_CODE:
        return [Finding("too_large", "high", f"Too large: the program has more than {MAX_CODE} characters")]
    grammar = tree_sitter_typescript.language_typescript() if typescript else tree_sitter_javascript.language()
    tree = Parser(Language(grammar)).parse(code.encode("utf-8", "surrogatepass"))
    if tree.root_node.has_error:
        return None
    if is_too_deep(tree.root_node):
        return [Finding("too_deep", "high", "Too deep: the program is nested too deep to be analysed")]
    return unique(_Analyser(tree.root_node).run())


class _Analyser:
    """Judges one program."""

    def __init__(self, root: Node) -> None:
        self._root, self._names = root, Names(root)

    def run(self) -> list[Finding]:
        """Return the findings of the program."""
        found = [finding for node in walk(self._root) for finding in self._judge(node)]
        return [*found, *self._assembled(self._root)]

    def _assembled(self, root: Node) -> list[Finding]:
        """Properties that are read by a name that the program has as a text, or decodes."""
        computed = next((n for n in walk(root) if n.type == "subscript_expression" and self._is_computed(n)), None)
        if computed is None:
            return []
        pieces = {text_of(n).strip("'\"`") for n in walk(root) if n.type in ("string", "template_string")}
        if name := next((n for n in sorted(policy.REFUSED) if _is_made_of(n, pieces)), None):
            return _unresolved(computed, f"a computed property beside texts that make {name!r}")
        for node in walk(root):
            if node.type in ("string", "template_string", "binary_expression") and not is_shown(node):
                if (self._names.constant(node) or "").strip(" '\"`") in policy.REFUSED:
                    return _unresolved(computed, f"a computed property beside the text {self._names.constant(node)!r}")
            if node.type == "pair" and text_of(node.child_by_field_name("key")) in ("constructor", "eval", "Function"):
                return _unresolved(computed, "a computed property beside a key that is a constructor")
            if node.type == "call_expression" and self._decodes(node):
                return _unresolved(computed, "a computed property beside a text that is decoded")
        return []

    def _decodes(self, call: Node) -> bool:
        """Report whether a call makes a text of codes, or of the parts of a text that is written in the program."""
        function = call.child_by_field_name("function")
        method = text_of(function).split(".")[-1]
        if method in policy.DECODING:
            return True
        base = function.child_by_field_name(
            "object") if function is not None and function.type == "member_expression" else None
        if base is not None and base.type == "identifier":
            base = self._names.only_value(base)
        return method in policy.JOINING and base is not None and self._names.holds_text(base)

    def _is_computed(self, node: Node) -> bool:
        index = node.child_by_field_name("index")
        if index is None or self._names.constant(index) is not None:
            return False
        # The counter of a loop reads an element.
        return index.type not in ("number", "unary_expression", "update_expression")

    def _judge(self, node: Node) -> list[Finding]:
        kind = node.type
        if kind in ("identifier", "shorthand_property_identifier"):
            return self._name(node)
        if kind == "property_identifier" and node.parent and node.parent.type == "member_expression":
            return self._property(node, unescape(text_of(node)))
        if kind == "subscript_expression":
            return self._subscript(node)
        if kind == "call_expression":
            return self._call(node)
        if kind in ("shorthand_property_identifier_pattern", "property_identifier") and _is_pattern_key(node):
            name = unescape(text_of(node))
            return _block(node, name) if name in policy.REFUSED - {"prototype"} else []
        if kind in ("string", "template_string", "binary_expression") and not is_shown(node) and (
            policy.is_program_url(*self._names.beginning(node))):
            return _block(node, "a program in a URL")
        if kind == "assignment_expression":
            return self._assigned(node)
        if kind == "new_expression":
            return self._new(node)
        if kind == "import_statement" or (kind == "export_statement" and node.child_by_field_name("source")):
            return self._import(node, node.child_by_field_name("source"))
        if kind == "import" and node.parent and node.parent.type == "call_expression":
            return _unresolved(node, "import()")
        if kind == "pair" and (key := node.child_by_field_name("key")) and self._names.constant(key) in ("__proto__",):
            return [] if text_of(node.child_by_field_name("value")) == "null" else _block(node, "__proto__")
        if kind == "jsx_opening_element" and text_of(node.child_by_field_name("name")).lower() in ("script", "iframe"):
            return _block(node, "an element that runs a program")
        if kind in ("with_statement", "debugger_statement"):
            return _block(node, kind.split("_")[0])
        if kind == "computed_property_name":
            name = self._names.constant(node.named_children[0] if node.named_children else None)
            if name in policy.REFUSED and name != "prototype":
                return _block(node, name or "")
            if name is None and node.parent and node.parent.parent and node.parent.parent.type == "object_pattern":
                return _unresolved(node, "a computed property")
        return []

    def _name(self, node: Node) -> list[Finding]:
        name = unescape(text_of(node))
        if node.parent and node.parent.type in ("method_definition", "labeled_statement", "statement_identifier"):
            return []
        if name == "module" and node.parent is not None and text_of(
            node.parent.child_by_field_name("property")) == "exports":
            return []
        if _is_only_tested(node):
            return []
        if name == "require" and (module := self._required(node)) is not None:
            return _module(node, module)
        if name == "process" and _is_harmless_process(node):
            return []
        if name in policy.NAMES or (
            name in policy.MODULES and _is_base_of_call(node) and not self._names.is_declared(node)):
            return _block(node, name)
        if name in policy.TIMERS and not _is_called(node):
            return _unresolved(node, f"{name} used as a value")
        if name in policy.GLOBALS:
            parent = node.parent
            if not (parent and parent.type == "member_expression" and parent.child_by_field_name("object") == node):
                if not (
                    parent
                    and parent.type in ("variable_declarator", "formal_parameters", "required_parameter")
                    and parent.child_by_field_name("value") != node
                ):
                    return _unresolved(node, f"{name} used as a value")
        return []

    def _assigned(self, node: Node) -> list[Finding]:
        """A handler of an event that is a text."""
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        name = text_of(left).rsplit(".", 1)[-1] if left is not None and left.type == "member_expression" else ""
        if re.fullmatch(r"on[a-z]+", name) and right is not None and right.type in (
            "string", "template_string", "binary_expression"):
            return _block(node, f"{name} of a text")
        return []

    def _required(self, name: Node) -> str | None:
        """The module of a call of require with one text, or None."""
        call = name.parent
        if call is None or not _is_called(name):
            return None
        arguments = call.child_by_field_name("arguments")
        return self._names.constant(_first(arguments)) if arguments is not None and len(
            arguments.named_children) == 1 else None

    def _new(self, node: Node) -> list[Finding]:
        """An object that is made by a class whose name is computed."""
        made = node.child_by_field_name("constructor")
        if made is not None and made.type not in ("identifier", "member_expression"):
            if any(n.type in ("subscript_expression", "call_expression", "await_expression") for n in walk(made)):
                return _unresolved(node, "new of a computed class")
        return []

    def _property(self, node: Node, name: str) -> list[Finding]:
        member = node.parent
        base = member.child_by_field_name("object") if member else None
        if name in policy.TIMERS and member is not None and not _is_called(member):
            return _unresolved(node, f"{name} used as a value")
        if _is_cookie(base, name):
            return _block(node, "document.cookie", "high")
        if name not in policy.PROPERTIES and not (name in policy.NAMES and self._names.is_global(base)):
            return []
        if name == "exec" and base is not None and base.type in ("regex", "identifier"):
            return []
        if member is not None and _is_only_tested(member):
            return []
        if name == "constructor" and member is not None and _is_named(member):
            return []
        if name == "prototype" and base is not None and base.type == "identifier":
            return []
        return _block(node, name)

    def _subscript(self, node: Node) -> list[Finding]:
        base, index = node.child_by_field_name("object"), node.child_by_field_name("index")
        name = self._names.constant(index)
        if name is not None:
            if name in policy.TIMERS:
                return _unresolved(node, f"{name} read by a name in brackets")
            return _block(node, name) if _is_cookie(base, name) or (
                text_of(base) == "document" and name in ("write", "writeln")) or (
                name in policy.PROPERTIES | policy.NAMES and name != "exec") else []
        if text_of(base) in policy.GLOBALS:
            return _unresolved(node, f"a computed property of {text_of(base)}")
        if index is not None and text_of(index.child_by_field_name("function")) in ("Symbol", "Symbol.for"):
            return []
        if index is not None and index.type in (
            "binary_expression", "template_string", "call_expression", "array", "subscript_expression"):
            inner = {n.type for n in walk(index)}
            if inner & {"string", "template_string"}:
                return _unresolved(node, "a property whose name is computed from texts")
        return []

    def _call(self, node: Node) -> list[Finding]:
        function = node.child_by_field_name("function")
        name = unescape(text_of(function)).replace("?.", ".")
        first = _first(node.child_by_field_name("arguments"))
        last = name.split(".")[-1]
        if last in policy.TIMERS and not self._is_function(first):
            return _block(node, f"{last} of a text") if self._names.constant(first) is not None else _unresolved(
                node, f"{last} of a computed callback")
        if name in ("document.write", "document.writeln"):
            return _block(node, name, "high")
        if name.startswith("Reflect."):
            return _unresolved(node, name) if first is None or last not in ("has", "ownKeys", "isExtensible") else []
        text = self._names.constant(first)
        if last == "createElement" and (text or "script").lower() in ("script", "iframe", "object", "embed"):
            return _block(node, f"createElement of a {text or 'computed element'}")
        if last == "setAttribute" and re.match(r"on|src|href|srcdoc", text or "on", re.I):
            return _unresolved(node, "setAttribute of an event or an address")
        if function is not None and function.type == "parenthesized_expression" and function.named_children[
            0].type == "sequence_expression" and not _is_compiled_import(function.named_children[0]):
            return _unresolved(node, "a call through a sequence")
        if name.startswith("Object.") and last in policy.REFLECTING:
            return self._reflected(node, name, node.child_by_field_name("arguments"))
        return []

    def _reflected(self, node: Node, name: str, arguments: Node | None) -> list[Finding]:
        """The properties that a function of Object looks up or hands out."""
        given = arguments.named_children if arguments is not None else []
        if len(given) > 1 and (constant := self._names.constant(given[1])) in policy.PROPERTIES | policy.NAMES:
            return _block(node, constant or "")
        if any(n.type == "identifier" and text_of(n) in policy.GLOBALS for n in given):
            return _unresolved(node, f"{name} of a global object")
        if name == "Object.getOwnPropertyDescriptor" and len(given) > 1 and self._names.constant(given[1]) is None:
            return _unresolved(node, f"{name} with a name that is computed")
        if name == "Object.getOwnPropertyDescriptors" and given and given[0].type in (
            "function_expression", "arrow_function", "class"):
            return _unresolved(node, f"{name} of a function")
        return []

    def _is_function(self, node: Node | None) -> bool:
        """Report whether a callback is a function that is written there, or a name of one that the program binds."""
        if node is None:
            return False
        if node.type in ("arrow_function", "function_expression", "function"):
            return True
        if node.type == "identifier":
            return self._names.is_bound_to_function(node) or not self._names.hold_program_text
        if node.type == "call_expression":
            return text_of(node.child_by_field_name("function")).endswith(".bind")
        return node.type == "member_expression" and not self._names.hold_program_text

    def _import(self, node: Node, source: Node | None) -> list[Finding]:
        return _module(node, self._names.constant(source) or "")


def _is_made_of(name: str, pieces: set[str]) -> bool:
    """Report whether a name is several of the given texts, one behind the other."""
    ends = {0: 0}  # a position that texts reach, and how many texts
    for at in range(len(name)):
        for end in range(at + 2, len(name) + 1) if at in ends else ():
            if name[at:end] in pieces:
                ends[end] = ends[at] + 1
    return ends.get(len(name), 0) > 1


def _block(node: Node, pattern: str, severity: str = "critical") -> list[Finding]:
    return [Finding("dangerous_pattern", severity, f"Dangerous pattern: {pattern}", node.start_point[0] + 1)]


def _unresolved(node: Node, what: str) -> list[Finding]:
    return [Finding("unresolved_reflection", "high", f"Unresolved reflection: {what}", node.start_point[0] + 1)]


def _is_harmless_process(node: Node) -> bool:
    """Report whether a member of `process` is read that neither starts nor reads anything."""
    member = node.parent
    if member is None or member.type != "member_expression" or member.child_by_field_name("object") != node:
        return False
    is_target = member.parent is not None and member.parent.child_by_field_name("left") == member
    return text_of(member.child_by_field_name("property")) in policy.HARMLESS_PROCESS and not is_target


def _is_base_of_call(node: Node) -> bool:
    """Report whether a member of a name is called, as in `fs.readFileSync(x)`."""
    member = node.parent
    return member is not None and member.type == "member_expression" and (
        member.child_by_field_name("object") == node) and _is_called(member)


def _is_pattern_key(node: Node) -> bool:
    """Report whether a name is read by destructuring."""
    parent = node.parent
    if node.type == "shorthand_property_identifier_pattern":
        return True
    return parent is not None and parent.type == "pair_pattern" and parent.child_by_field_name("key") == node


def _is_called(node: Node) -> bool:
    """Report whether an identifier or a member is the function of a call."""
    return node.parent is not None and node.parent.type == "call_expression" and node.parent.child_by_field_name(
        "function") == node


def _is_only_tested(node: Node) -> bool:
    """Report whether a name or a property is only compared: `f instanceof Function`, `typeof process`,
    `a.constructor === B`."""
    parent = node.parent
    if parent is None:
        return False
    operator = text_of(parent.child_by_field_name("operator"))
    if parent.type == "binary_expression":
        return operator in ("===", "!==", "==", "!=") or (
            operator == "instanceof" and parent.child_by_field_name("right") == node)
    return parent.type == "unary_expression" and operator in ("typeof", "!")


def _first(arguments: Node | None) -> Node | None:
    named = [n for n in arguments.named_children if n.type != "comment"] if arguments is not None else []
    return named[0] if named else None


def _is_cookie(base: Node | None, name: str) -> bool:
    """Report whether `base.name` is document.cookie, which holds the keys of sessions."""
    return name == "cookie" and text_of(base).split(".")[-1] == "document"


def _is_named(member: Node) -> bool:
    """Report whether only the name of a constructor is read, as a text: `a.constructor.name`; or a static member of the
    class of `this`."""
    outer = member.parent
    if outer is None or outer.type != "member_expression" or outer.child_by_field_name("object") != member:
        return False
    if text_of(member.child_by_field_name("object")) == "this":
        return True
    is_target = outer.parent is not None and outer.parent.child_by_field_name("left") == outer
    return text_of(outer.child_by_field_name("property")) == "name" and not _is_called(outer) and not is_target


def _is_compiled_import(sequence: Node) -> bool:
    """Report whether a sequence is `(0, module.name)`, as compilers write the call of an imported function."""
    parts = sequence.named_children
    return len(parts) == 2 and parts[0].type == "number" and parts[1].type == "member_expression" and text_of(
        parts[1].child_by_field_name("object")) not in policy.GLOBALS


def _module(node: Node, name: str) -> list[Finding]:
    """Judge the import of a module."""
    module = name.removeprefix("node:").split("?")[0].removesuffix("/")
    if not module or module in policy.MODULES or policy.URL.match(module) or module.endswith(".node") or (
        module.startswith("/")):
        return _block(node, f"import of {module}")
    return []
