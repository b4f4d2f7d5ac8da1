"""The packages in the image of the engines, and the names in them that run code or import by name.

libraries.tsv has the functions whose source reaches eval, an import, a program, a file, a connection or getattr; a
test compares it with the packages' sources. REFUSED adds names of compiled packages, and names that lead to those
functions.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType, ModuleType

ALL = frozenset({"*"})

_MORE = {
    "sympy": "preview external codegen autowrap test doctest interactive run_all_tests testing init_session pygletplot "
    "experimental_lambdify vectorized_lambdify ufuncify source importtools PygletPlot",
    "PIL": "ImageMath ImageGrab ImageShow ImageFile ImageQt ImageTk truetype show pilinfo",
    "sqlglot": "executor serde load import_module",
    "z3": "z3core lib Z3_DEBUG from_file parse_file parse_smt2_file open_log enable_trace",
    "lxml": "parse parseid iterparse XSLT xslt XInclude xinclude ElementInclude ElementTree getroottree DTD RelaxNG "
    "Schematron XMLSchema xmlfile htmlfile canonicalize Resolver open_in_browser submit_form usedoctest doctestcompare",
    "yaml": "load load_all unsafe_load unsafe_load_all full_load full_load_all Loader UnsafeLoader FullLoader CLoader "
    "CFullLoader CUnsafeLoader UnsafeConstructor Constructor loader constructor",
    "detect_secrets": "settings usage audit main initialize baseline scan_file scan_files scan_diff scan_directory "
    "get_files_to_scan load_from_baseline wordlist importlib pre_commit_hook mp",
    "six": "moves add_move MovedModule get_method_function get_method_self get_function_closure get_function_code "
    "get_function_defaults get_function_globals",
    "eyecite": "HyperscanTokenizer",
    "ahocorasick": "load",
    "typing_extensions": "get_type_hints ForwardRef",
    "holidays": "registry_loader",
    "stdnum": "get_soap_client numdb check_vies check_nalog check_uid check_kps check_offeneregister",
    "tree_sitter": "Language build_library print_dot_graph print_dot_graphs",
    "mpmath": "runtests",
    "dateutil": "tarfile",
    "postgast": "native",
    "idna": "codec",
}


def _table() -> list[list[str]]:
    text = files(__package__).joinpath("libraries.tsv").read_text("utf-8")
    return [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]


def _refused() -> dict[str, frozenset[str]]:
    names: dict[str, set[str]] = {package: set(words.split()) for package, words in _MORE.items()}
    for package, _, _, verdict in _table():
        if verdict not in ("code", "-"):
            names.setdefault(package, set()).add(verdict)
    return {package: frozenset(words) for package, words in names.items()}


# Names that a program may not take from a package.
REFUSED: Mapping[str, frozenset[str]] = MappingProxyType(_refused())

# Modules of the standard library, and what they have, that packages in the image import under these names. `from z3
# import *` brings all of ctypes. Honest attributes of objects have the names in SHARED too.
SHARED = frozenset("io types platform signal modules Path glob inspect gc codecs ssl pointer sizeof".split())
EXPORTED = (
    SHARED
    | {n for n, v in vars(ctypes).items() if not n.startswith("_") and not isinstance(v, ModuleType)}
    - {"Array", "Union", "cast", "resize", "alignment"}
    | set(
        "from_address from_buffer from_buffer_copy wintypes windll gzip mmap timeit iglob webbrowser multiprocessing "
        "pathlib TarFile get_data FunctionType CodeType InteractiveConsole currentframe getmro unwrap getsourcefile "
        "HTTPSHandler getproxies listdir importlib_resources get_objects get_referrers _Path _resources _types".split())
)

# Packages that evaluate texts as Python.
EVALUATING = frozenset(package for package, _, _, verdict in _table() if verdict == "code")
