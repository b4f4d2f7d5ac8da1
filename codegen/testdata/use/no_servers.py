"""The package servers imports where nothing is configured."""

import servers
from servers import *

assert servers.__all__ == [] and "No server is configured" in servers.__doc__
try:
    servers.files
except AttributeError as error:
    assert "'files'" in str(error) and "none" in str(error)
else:
    raise AssertionError("there is a server")
