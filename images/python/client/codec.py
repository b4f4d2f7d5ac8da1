"""JSON (RFC 8259) for the broker's socket and for results: strict, compact, fast.

This uses the C halves of the standard `json` module directly. The module
around them imports `re` and `enum`, which costs a cold start in a sandbox more
than the rest of a small run. References are taken at import, so code that
replaces `json.dumps` changes nothing here.
"""

from _json import encode_basestring, make_encoder, make_scanner

from client.keys import key_text


class NotSerializable(TypeError):
    """A value has no JSON form; the message has the path to it and what to write instead."""


class _Strict:
    """The options that the scanner reads: standard JSON and nothing more."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int

    @staticmethod
    def parse_constant(name):
        raise ValueError(f"{name} is not JSON")


_scan = make_scanner(_Strict)


def decode(text):
    """Return the value of a JSON text without white space around it.

    Raises ValueError for anything that is not exactly one JSON value, and
    RecursionError for one nested deeper than the recursion limit.
    """
    try:
        value, end = _scan(text, 0)
    except (StopIteration, SystemError):  # SystemError: its error class is in `json`, which is not imported
        raise ValueError("not JSON") from None
    if end != len(text):
        raise ValueError("more than one JSON value")
    return value


def encode(value, root):
    """Return `value` as compact JSON text.

    Numbers keep every digit and lone surrogates become U+FFFD. Raises
    NotSerializable for whatever JSON cannot hold: NaN and infinities, sets,
    bytes, cycles, objects, keys that become equal as strings. `root` is what the
    message calls the value ("result").
    """
    try:
        text = "".join(_encoder()(value, 0))
        if _keys_collide(value):
            raise ValueError("two keys are equal as strings")
    except BaseException as cause:  # a hostile value may raise SystemExit
        from client.problem import describe

        raise NotSerializable(describe(value, root, cause)) from None
    return text if text.isascii() else _well_formed(text)


def _encoder():
    # markers (to find cycles), default, string encoder, indent, separators,
    # sort_keys, skipkeys, allow_nan
    return make_encoder({}, _plain, encode_basestring, None, ":", ",", False, False, False)


def _plain(value):
    """Replace objects that define their JSON form, such as ToolResult."""
    convert = getattr(type(value), "__json__", None)
    if convert is None:
        raise TypeError(type(value).__name__)
    return convert(value)


def _keys_collide(value):
    """Report whether a dict in `value` has two keys with the same text, so that one would be lost."""
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            if not all(type(key) is str for key in value) and len({key_text(key) for key in value}) < len(value):
                return True
            stack.extend(value.values())
        elif isinstance(value, (list, tuple)):
            stack.extend(value)
    return False


def _well_formed(text):
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
