"""The modules that Python programs may use: standard library modules by allow-list, others by name."""

from __future__ import annotations

import builtins
import importlib
import re
import sys
from types import ModuleType
from typing import Any

from qwed_new.engines.code.libraries import ALL, EXPORTED, REFUSED

# Builtins that run text, read files or hand out namespaces.
BUILTINS = frozenset(
    "eval exec compile open __import__ breakpoint globals locals help license credits copyright __builtins__ "
    "__loader__ __spec__ __build_class__".split()
)

# Attributes that lead from any object to frames, code, classes or namespaces.
REFLECTIVE = frozenset(
    "f_globals f_locals f_builtins f_back f_code tb_frame tb_next gi_frame gi_code gi_yieldfrom cr_frame cr_code "
    "cr_await cr_origin ag_frame ag_code ag_await func_globals func_code func_closure func_defaults co_code co_consts "
    "co_names mro".split()
)

# The only names with two underscores that a program may read.
DUNDERS = frozenset(
    "name qualname doc module class dict init new post_init str repr len eq ne lt le gt ge hash bool int float index "
    "complex round trunc floor ceil add sub mul truediv floordiv mod pow neg pos abs invert and or xor lshift rshift "
    "matmul divmod radd rsub rmul rtruediv rfloordiv rmod rpow rand ror rxor iadd isub imul itruediv iter next "
    "reversed contains getitem setitem delitem enter exit aenter aexit aiter anext await call format bytes sizeof "
    "version file annotations slots all author setattr delattr members copy deepcopy main match_args missing "
    "dataclass_fields args notes cause context traceback set_name length_hint".split()
)

# Methods that read, write or start something, on objects of any type.
METHODS = frozenset(
    "system popen posix_spawn spawnl spawnv spawnle spawnve execv execve execl execle execvp fork forkpty "
    "check_output check_call getoutput read_text write_text read_bytes write_bytes unlink rmdir touch mkdir "
    "symlink_to hardlink_to link_to chmod lchmod iterdir rglob load_module exec_module find_spec find_loader "
    "run_module run_path import_module loads_from_name read_gpickle load_lexer_from_file load_formatter_from_file "
    "loadTestsFromName loadTestsFromNames discover get_field _getframe read_pickle to_pickle read_hdf unsafe_load "
    "full_load unsafe_eval runstring create_subprocess_shell create_subprocess_exec subprocess_exec subprocess_shell "
    "open_connection start_server create_server create_connection enable_load_extension load_extension dlopen CDLL "
    "LoadLibrary urlopen urlretrieve __subclasses__ __globals__ __code__".split()
)

_DENY = {
    "string": {"Formatter"},
    "dataclasses": {"make_dataclass"},
    "logging": {"FileHandler", "config", "handlers"},
    "typing": {"get_type_hints", "ForwardRef", "evaluate_forward_ref"},
    "types": {
        "FunctionType",
        "LambdaType",
        "CodeType",
        "new_class",
        "prepare_class",
        "resolve_bases",
        "coroutine",
        "CellType",
        "DynamicClassAttribute",
    },
    "codecs": {"open", "EncodedFile", "register", "StreamReaderWriter"},
    "concurrent.futures": {"ProcessPoolExecutor", "process"},
    "argparse": {"FileType"},
    "xml.etree.ElementTree": {"parse", "iterparse", "ElementTree"},
    "platform": {"popen"},
    "threading": {"settrace", "setprofile", "settrace_all_threads", "setprofile_all_threads", "excepthook"},
    "warnings": {"showwarning"},
    "base64": {"main", "test"},
    "builtins": set(BUILTINS) | {"vars", "getattr", "setattr", "delattr", "type"},
    "email": {"message_from_file", "message_from_binary_file"},
    "unittest": {"mock", "loader", "TestProgram", "runner", "util"},
    "zoneinfo": {"reset_tzpath"},
    "traceback": {"walk_stack", "walk_tb", "extract_stack", "StackSummary", "FrameSummary", "linecache"},
}

_ONLY = {
    "os": "path sep linesep name getcwd environ getenv cpu_count getpid urandom pathsep altsep extsep curdir pardir "
        "devnull fspath fsencode fsdecode PathLike strerror",
    "sys": (
        "version version_info platform maxsize argv exit stdout stderr stdin byteorder float_info int_info hash_info "
        "getsizeof getrecursionlimit setrecursionlimit path executable implementation maxunicode getdefaultencoding "
        "flags exc_info intern api_version set_int_max_str_digits get_int_max_str_digits stdlib_module_names "
        "builtin_module_names getrefcount prefix"
    ),
    "io": "StringIO BytesIO TextIOBase IOBase RawIOBase BufferedIOBase SEEK_SET SEEK_CUR SEEK_END UnsupportedOperation "
        "DEFAULT_BUFFER_SIZE",
    "pickle": "dumps HIGHEST_PROTOCOL DEFAULT_PROTOCOL PickleError PicklingError UnpicklingError",
    "marshal": "dumps version",
    "inspect": "signature isfunction isclass ismethod isgenerator iscoroutine iscoroutinefunction isabstract Parameter "
        "Signature getdoc cleandoc isbuiltin",
    "gzip": "compress decompress BadGzipFile",
    "bz2": "compress decompress BZ2Compressor BZ2Decompressor",
    "lzma": "compress decompress LZMAError",
    "timeit": "timeit repeat default_timer Timer",
    "asyncio": (
        "run sleep gather Queue PriorityQueue LifoQueue Lock Event Semaphore BoundedSemaphore Condition wait wait_for "
        "timeout TimeoutError CancelledError create_task Task Future as_completed TaskGroup current_task shield "
        "iscoroutinefunction iscoroutine get_event_loop get_running_loop new_event_loop ensure_future to_thread "
        "Runner FIRST_COMPLETED ALL_COMPLETED FIRST_EXCEPTION QueueEmpty QueueFull InvalidStateError set_event_loop"
    ),
    "sqlite3": "connect Row Error OperationalError IntegrityError ProgrammingError DatabaseError Connection Cursor "
        "sqlite_version PARSE_DECLTYPES PARSE_COLNAMES",
    "importlib": "metadata",
    "importlib.metadata": "version PackageNotFoundError",
    "weakref": "ref WeakKeyDictionary WeakValueDictionary WeakSet proxy finalize",
    "signal": "SIGINT SIGTERM",
    "pathlib": "Path PurePath PosixPath PurePosixPath PureWindowsPath",
    "contextlib": "contextmanager asynccontextmanager suppress redirect_stdout redirect_stderr nullcontext ExitStack "
        "AsyncExitStack closing AbstractContextManager ContextDecorator",
    "resource": "getrusage RUSAGE_SELF",
    "shlex": "split join quote",
    "gettext": "gettext ngettext pgettext npgettext NullTranslations",
}

_ALLOWED = (
    "os.path math cmath time itertools functools operator string re json decimal fractions statistics random datetime "
    "calendar zoneinfo collections collections.abc heapq bisect array copy enum types typing dataclasses abc numbers "
    "hashlib hmac secrets base64 binascii struct uuid textwrap pprint difflib unicodedata locale html html.parser "
    "html.entities xml xml.etree xml.etree.ElementTree csv urllib urllib.parse ipaddress email email.message "
    "email.utils email.mime email.mime.text email.mime.multipart traceback threading concurrent concurrent.futures "
    "queue sched zlib argparse platform fnmatch ast graphlib keyword token errno stat codecs quopri colorsys logging "
    "warnings unittest __future__ posixpath ntpath genericpath reprlib builtins json.decoder json.encoder "
    "unittest.case encodings tomllib getopt"
).split()

STDLIB: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    **{name: (ALL, frozenset(_DENY.get(name, ()))) for name in _ALLOWED},
    **{name: (frozenset(words.split()), frozenset()) for name, words in _ONLY.items()},
}

# Modules whose public names hold no other module, so that they may be handed on.
LEAVES = frozenset({"math", "cmath", "time", "itertools", "zlib", "binascii", "unicodedata", "errno", "array"})

# Packages of others that run code, start programs or open connections.
PACKAGES = frozenset(
    "__main__ requests httpx httpcore urllib3 isympy aiohttp websocket websockets paramiko fabric pexpect ptyprocess "
    "sh plumbum invoke cffi dill cloudpickle joblib jsonpickle psutil pyautogui selenium playwright scapy pwn "
    "pwntools twisted tornado gevent eventlet trio anyio boto3 botocore docker kubernetes redis pymongo psycopg "
    "psycopg2 mysql pymysql smbclient ftplib execnet rpyc Pyro4 Pyro5 ray dask numexpr asteval simpleeval "
    "restrictedpython nbformat IPython ipykernel pip setuptools pkg_resources distutils _distutils_hack wheel Cython "
    "pyximport numba llvmlite tinycc gpg wmi win32api win32com comtypes pythoncom hy coconut frida angr".split()
)

# Names by which a dangerous module is reached through another one.
SEGMENTS = frozenset(
    "os sys subprocess builtins __builtin__ importlib ctypes socket shutil posix nt pty pickle marshal imp runpy "
    "pkgutil code codeop pdb inspect gc multiprocessing signal tempfile glob http urllib2 requests ctypeslib f2py "
    "distutils testing_runstring linecache zipimport compat_os exec_ eval_ execfile".split()
)

# Functions and methods of packages that read or write the file that their first argument names.
FILES = frozenset(
    "save savez savez_compressed savefig imsave imread savetxt loadtxt genfromtxt tofile fromfile dump to_csv to_json "
    "to_excel to_parquet to_feather to_html to_markdown to_xml to_stata to_latex read_csv read_json read_excel "
    "read_parquet read_html read_xml read_table read_fwf read_feather read_orc read_sas read_spss read_stata read_sql "
    "ExcelFile ExcelWriter HDFStore".split()
)
PATH_ARGUMENTS = frozenset(
    "path path_or_buf filepath_or_buffer path_or_buffer fname file from_file io fp filename excel_writer".split())

# Keyword arguments that may only be False: pickles, evaluated texts, shells and files that an XML document names.
OFF = frozenset("allow_pickle eval_str shell resolve_entities load_dtd dtd_validation attribute_defaults".split())
# Keyword arguments that are judged, under which name a dictionary may have them too.
JUDGED = OFF | PATH_ARGUMENTS | {"fromfile_prefix_chars", "filename", "stmt", "setup", "assigned", "updated"}
# Arguments of Z3's solvers that are addresses, or the file of a log.
SOLVER_ARGUMENTS = frozenset("logFile solver optimize fixedpoint".split())
# Parameters of Z3 and commands of SMT-LIB that name a file, and functions of Z3's C interface, which take addresses.
SOLVER_FILES = re.compile(r"file|trace|drat|(?:^|[._:-])log$", re.I)
SOLVER_COMMANDS = re.compile(r"output-channel|\binclude\b", re.I)
SOLVER_C = re.compile(r"Z3_[a-z]")

THIRD_PARTY_DENY = {
    **REFUSED,
    "numpy": frozenset("load fromfile memmap f2py ctypeslib distutils fromregex genfromtxt DataSource".split()),
    "pandas": frozenset("read_pickle to_pickle eval read_hdf HDFStore io".split()),
    "torch": frozenset("load hub compile jit package".split()),
    "tensorflow": frozenset("io keras".split()),
    "scipy": frozenset("io weave".split()),
    "sklearn": frozenset("externals".split()),
    "matplotlib": frozenset("animation style".split()),
    "jinja2": frozenset("Environment Template NativeEnvironment nativetypes".split()),
    "mako": ALL,
    "ruamel": ALL,
    "pytest": frozenset("main console_main".split()),
    "qwed_sdk": frozenset("engine worker cli Worker".split()),
}

ALTERNATIVES = {
    "eval": "ast.literal_eval for literals",
    "exec": "call the function directly",
    "os.system": "a library function in place of a program",
    "open": "keep the data in the program",
    "pickle.loads": "json.loads",
    "yaml.load": "yaml.safe_load",
}

_IDENTITIES: dict[int, str] = {}


def identities() -> dict[int, str]:
    """Return the dangerous functions themselves, so that they are recognized under any name."""
    if not _IDENTITIES:
        for name in BUILTINS:
            if hasattr(builtins, name):
                _IDENTITIES[id(getattr(builtins, name))] = name
        for module, names in {
            "os": "system popen execv execve execl execle execlp execvp spawnv spawnve spawnl posix_spawn fork forkpty "
                "remove unlink rmdir open fdopen".split(),
            "pickle": ["loads", "load", "Unpickler"],
            "marshal": ["loads", "load"],
            "importlib": ["import_module", "reload", "__import__"],
        }.items():
            for name in names:
                if (found := getattr(importlib.import_module(module), name, None)) is not None:
                    _IDENTITIES.setdefault(id(found), f"{module}.{name}")
    return _IDENTITIES


# Attributes that programs set to configure a package.
SETTINGS = frozenset({"dps", "prec", "pretty"})


def in_image(path: str) -> bool:
    """Whether a module or name is of a package that the image of the engines has."""
    return path.split(".")[0] in REFUSED


def leads_out(root: str, part: str) -> bool:
    """Whether an attribute of a package is a package that runs code or opens connections, something of the standard
    library that a package of the image imports, a function of Z3's C interface, or a module that a package of this
    distribution imports."""
    if part in PACKAGES or (in_image(root) and part in EXPORTED):
        return True
    if root == "z3" and SOLVER_C.match(part):
        return True
    return root.startswith("qwed_") and (
        part in sys.stdlib_module_names or part in ("Path", "Worker", "z3", "sympy", "sqlglot", "holidays")
    )


def is_stdlib(module: str) -> bool:
    """Whether the standard library has this module."""
    return module.split(".")[0] in sys.stdlib_module_names


def real_module(name: str) -> ModuleType | None:
    """The module itself, for those that STDLIB allows."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def real_attribute(module: str, name: str) -> Any:
    """Return an attribute of an allowed module, or raise LookupError."""
    found = real_module(module)
    if found is None:
        raise LookupError(module)
    try:
        return getattr(found, name)
    except AttributeError:
        submodule = f"{module}.{name}"
        if submodule in STDLIB and (loaded := real_module(submodule)) is not None:
            return loaded
        raise LookupError(name) from None


def refused(module: str, name: str) -> bool:
    """Report whether a program may not read this attribute of an allowed module."""
    allowed, denied = STDLIB[module]
    if name in denied:
        return True
    return allowed is not ALL and name not in allowed and not (
        name.startswith("__") and name.strip("_") in DUNDERS - {"dict"})
