"""2 tools of server "google-drive", as async functions of one dict, or of keyword arguments.

get_document: Get one document.
list_documents: List all documents.
"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .get_document import get_document as get_document, GetDocumentInput as GetDocumentInput, GetDocumentOutput as GetDocumentOutput
    from .list_documents import list_documents as list_documents, ListDocumentsInput as ListDocumentsInput
    from client.mcp_client import ToolError as ToolError

_Server.__attach__(
    __name__,
    {
        "get_document": "get_document GetDocumentInput GetDocumentOutput",
        "list_documents": "list_documents ListDocumentsInput",
    },
    {},
)
