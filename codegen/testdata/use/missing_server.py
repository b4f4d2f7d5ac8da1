"""A missing server imports, and says on use what is wrong; the others work."""

import servers
import servers.crm
from servers.files import read

PROBLEM = 'Server "crm" is not available: connect to "https://crm.example.com": refused'


def fails(code):
    try:
        exec(code, {"servers": servers})
    except servers.ServerUnavailable as error:
        assert str(error).startswith(PROBLEM), error
    else:
        raise AssertionError(f"{code} works")


fails("servers.crm.get_account({})")
fails("from servers.crm import get_account")
fails("from servers.crm.get_account import get_account")
fails("import servers.crm.get_account")
fails("servers.crm.anything")
fails("servers.crm.attach")
fails("from servers.crm import ToolError")
assert not hasattr(servers.crm, "__wrapped__"), "special names stay plain errors"
assert servers.crm.__doc__.startswith(PROBLEM)
assert read.__name__ == "read"
