"""The keys of objects in JSON."""


def key_text(key):
    """Return the string that JSON has in the place of a key, as `json.dumps` makes it."""
    if isinstance(key, str):
        return key
    return {True: "true", False: "false", None: "null"}[key] if key is None or isinstance(key, bool) else repr(key)
