"""Names are case-sensitive: what differs in case only stays apart, by its own name too."""

import servers.files as files

assert files.get is not files.Get and files.get.__doc__ != files.Get.__doc__
for own in ("get", "Get", "a_b", "aB", "aBC", "a_b_c", "HTTPServer", "http_server", "getURLList"):
    assert getattr(files, own).__doc__ == f"The tool whose own name is {own}", own
