"""11 tools of server "files", as async functions of one dict, or of keyword arguments.

a_b: The tool whose own name is a_b
a_b_042ac5: The tool whose own name is aB
a_b_2e7336: The tool whose own name is a.b
a_b_c: The tool whose own name is a_b_c
a_b_d44362: The tool whose own name is a-b
a_bc: The tool whose own name is aBC
get: The tool whose own name is get
get_5fb9c3: The tool whose own name is Get
get_url_list: The tool whose own name is getURLList
http_server: The tool whose own name is http_server
http_server_7e64db: The tool whose own name is HTTPServer
"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .a_b import a_b as a_b, ABInput as ABInput
    from .a_b_042ac5 import a_b_042ac5 as a_b_042ac5, AB_042ac5Input as AB_042ac5Input, a_b_042ac5 as aB
    from .a_b_2e7336 import a_b_2e7336 as a_b_2e7336, AB_2e7336Input as AB_2e7336Input
    from .a_b_c import a_b_c as a_b_c, ABCInput as ABCInput
    from .a_b_d44362 import a_b_d44362 as a_b_d44362, AB_d44362Input as AB_d44362Input
    from .a_bc import a_bc as a_bc, ABcInput as ABcInput, a_bc as aBC
    from .get import get as get, GetInput as GetInput
    from .get_5fb9c3 import get_5fb9c3 as get_5fb9c3, Get_5fb9c3Input as Get_5fb9c3Input, get_5fb9c3 as Get
    from .get_url_list import get_url_list as get_url_list, GetUrlListInput as GetUrlListInput, get_url_list as getURLList
    from .http_server import http_server as http_server, HttpServerInput as HttpServerInput
    from .http_server_7e64db import http_server_7e64db as http_server_7e64db, HttpServer_7e64dbInput as HttpServer_7e64dbInput, http_server_7e64db as HTTPServer
    from client.mcp_client import ToolError as ToolError

_Server.__attach__(
    __name__,
    {
        "a_b": "a_b ABInput",
        "a_b_042ac5": "a_b_042ac5 AB_042ac5Input",
        "a_b_2e7336": "a_b_2e7336 AB_2e7336Input",
        "a_b_c": "a_b_c ABCInput",
        "a_b_d44362": "a_b_d44362 AB_d44362Input",
        "a_bc": "a_bc ABcInput",
        "get": "get GetInput",
        "get_5fb9c3": "get_5fb9c3 Get_5fb9c3Input",
        "get_url_list": "get_url_list GetUrlListInput",
        "http_server": "http_server HttpServerInput",
        "http_server_7e64db": "http_server_7e64db HttpServer_7e64dbInput",
    },
    {
        "aB": "a_b_042ac5",
        "aBC": "a_bc",
        "Get": "get_5fb9c3",
        "getURLList": "get_url_list",
        "HTTPServer": "http_server_7e64db",
    },
)
