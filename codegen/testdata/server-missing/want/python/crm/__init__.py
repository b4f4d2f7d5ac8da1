"""Server "crm" is not available: connect to "https://crm.example.com": refused \"\"\"; import os */ \u202e"""

from servers import MissingServer as _MissingServer

__all__ = []

_MissingServer.__attach__(__name__, "Server \"crm\" is not available: connect to \"https://crm.example.com\": refused \"\"\"; import os */ \u202e")
