"""24 tools of server "files", as async functions of one dict, or of keyword arguments.

_: The tool _
_3d: The tool _3d
_3d_da0568: The tool 3d
__3973e0: The tool -
arguments: The tool arguments
attach: The tool print
class_: The tool class_
class__088911: The tool class
delete: The tool delete
get: The tool get
get_input: The tool GetInput
index: The tool index
init: The tool __init__
invoke: The tool invoke
invoke_c8dc93: The tool _invoke
path: The tool __path__
print: The tool print
proto: The tool __proto__
server: The tool _Server
server_id: The tool SERVER_ID
then: The tool then
tool_error: The tool print
type_checking: The tool TYPE_CHECKING
undefined: The tool undefined
Left out: tool "-" has the function __3973e0: its name holds nothing but separators
Left out: tool "_" has the function _: its name holds nothing but separators
"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._ import _ as _, _Input as _Input
    from ._3d import _3d as _3d, _3dInput as _3dInput
    from ._3d_da0568 import _3d_da0568 as _3d_da0568, _3d_da0568Input as _3d_da0568Input
    from .__3973e0 import __3973e0 as __3973e0, __3973e0Input as __3973e0Input
    from .arguments import arguments as arguments, ArgumentsInput as ArgumentsInput
    from .attach import attach as attach, AttachInput as AttachInput
    from .class_ import class_ as class_, ClassInput as ClassInput
    from .class__088911 import class__088911 as class__088911, Class_088911Input as Class_088911Input
    from .delete import delete as delete, DeleteInput as DeleteInput
    from .get import get as get, Get_2998b3Input as Get_2998b3Input
    from .get_input import get_input as get_input, GetInputInput as GetInputInput, get_input as GetInput
    from .index import index as index, IndexInput as IndexInput
    from .init import init as init, InitInput as InitInput
    from .invoke import invoke as invoke, InvokeInput as InvokeInput
    from .invoke_c8dc93 import invoke_c8dc93 as invoke_c8dc93, Invoke_c8dc93Input as Invoke_c8dc93Input, invoke_c8dc93 as _invoke
    from .path import path as path, PathInput as PathInput
    from .print import print as print, PrintInput as PrintInput
    from .proto import proto as proto, ProtoInput as ProtoInput
    from .server import server as server, ServerInput as ServerInput
    from .server_id import server_id as server_id, ServerIdInput as ServerIdInput, server_id as SERVER_ID
    from .then import then as then, ThenInput as ThenInput
    from .tool_error import tool_error as tool_error, ToolErrorInput as ToolErrorInput, tool_error as ToolError
    from .type_checking import type_checking as type_checking, TypeCheckingInput as TypeCheckingInput
    from .undefined import undefined as undefined, UndefinedInput as UndefinedInput

_Server.__attach__(
    __name__,
    {
        "_": "_ _Input",
        "_3d": "_3d _3dInput",
        "_3d_da0568": "_3d_da0568 _3d_da0568Input",
        "__3973e0": "__3973e0 __3973e0Input",
        "arguments": "arguments ArgumentsInput",
        "attach": "attach AttachInput",
        "class_": "class_ ClassInput",
        "class__088911": "class__088911 Class_088911Input",
        "delete": "delete DeleteInput",
        "get": "get Get_2998b3Input",
        "get_input": "get_input GetInputInput",
        "index": "index IndexInput",
        "init": "init InitInput",
        "invoke": "invoke InvokeInput",
        "invoke_c8dc93": "invoke_c8dc93 Invoke_c8dc93Input",
        "path": "path PathInput",
        "print": "print PrintInput",
        "proto": "proto ProtoInput",
        "server": "server ServerInput",
        "server_id": "server_id ServerIdInput",
        "then": "then ThenInput",
        "tool_error": "tool_error ToolErrorInput",
        "type_checking": "type_checking TypeCheckingInput",
        "undefined": "undefined UndefinedInput",
    },
    {
        "GetInput": "get_input",
        "_invoke": "invoke_c8dc93",
        "_Server": "server",
        "SERVER_ID": "server_id",
        "ToolError": "tool_error",
        "TYPE_CHECKING": "type_checking",
    },
)
