"""Servers with the names of modules and of our own code stay out of each other's way."""

import inspect

import servers
import servers.attach
import servers.sys
from servers import google_drive, import_, _3d

assert servers.sys.modules.__name__ == "modules"
assert inspect.iscoroutinefunction(servers.attach.attach)
assert google_drive.get.__module__ == "servers.google_drive.get"
assert import_.get.__name__ == "get" and _3d.__all__ == ["ToolError"]
assert len([name for name in servers.__all__ if name.startswith("google_drive_")]) == 1
