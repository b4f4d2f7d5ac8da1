"""Every way to import a wrapper gives the same function, in any order."""

import asyncio
import contextlib
import inspect
import io
import pickle
import pydoc
import sys
import typing

import servers.google_drive.get_document  # binds the file's module first
import servers.google_drive as g
from servers.google_drive import get_document
from servers.google_drive.get_document import GetDocumentInput, get_document as from_file

assert g.get_document is get_document is from_file is servers.google_drive.get_document
assert inspect.iscoroutinefunction(get_document) and get_document.__name__ == "get_document"
assert "servers.google_drive.list_documents" not in sys.modules, "a file was loaded before it was asked for"

assert g.GetDocumentInput is GetDocumentInput and typing.is_typeddict(GetDocumentInput)
assert GetDocumentInput.__required_keys__ == {"documentId"} and "page" in GetDocumentInput.__optional_keys__
assert GetDocumentInput in typing.get_args(typing.get_type_hints(get_document)["arguments"])

from servers.google_drive import *

assert list_documents is g.list_documents and get_document is g.get_document
assert "servers.google_drive.list_documents" not in sys.modules, "a star loaded a file"
assert inspect.iscoroutinefunction(list_documents) and inspect.isfunction(list_documents)
assert list_documents.__name__ == "list_documents" and list_documents.__doc__.startswith("List all documents.")
assert list(inspect.signature(list_documents).parameters) == ["arguments", "named"]
assert pickle.loads(pickle.dumps(list_documents)) == list_documents == sys.modules["servers.google_drive.list_documents"].list_documents
assert g.list_documents is list_documents, "a file that loads later changes nothing"
assert dir(g) == ["get_document", "list_documents"] and g.__all__ == [*dir(g), "ToolError"]

import client.mcp_client
from servers.google_drive import ToolError as from_package
from servers.google_drive.get_document import ToolError as from_its_file

assert ToolError is from_package is from_its_file is client.mcp_client.ToolError

for missing in ("no_such_tool", "_private"):
    try:
        getattr(g, missing)
    except AttributeError as error:
        assert missing in str(error) and "dir(servers.google_drive)" in str(error)
    else:
        raise AssertionError(f"{missing} exists")

text = pydoc.plain(pydoc.render_doc(g))
for part in ("google-drive", "get_document: Get one document.", "async get_document(arguments", "Large documents take a while."):
    assert part in text, part

printed = io.StringIO()
with contextlib.redirect_stdout(printed):
    assert asyncio.run(list_documents()).data == {}, "arguments that may be left out"
assert printed.getvalue() == '["google-drive", "list_documents", {}, "list_documents"]\n'
