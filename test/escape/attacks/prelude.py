# What every attack in Python starts with; the test puts it in front.
import ctypes, errno, json, os, platform, socket, struct, subprocess, sys, time

result = []  # results of the attack: any element is a vulnerability

libc = ctypes.CDLL(None, use_errno=True)


def attempt(what, action):
    """Runs action. An OSError means that it was refused; a value that is not
    None means that it was reached, which counts as a success of the attack."""
    try:
        got = action()
    except OSError as error:
        print(f"refused: {what}: {error}", flush=True)
        return None
    if got is None:
        print(f"harmless: {what}", flush=True)
        return None
    result.append(f"{what}: {got!r}"[:300])
    return got


def syscall(name, *arguments):
    """Calls the kernel directly and raises OSError if the call fails."""
    number = NUMBERS[name][0 if platform.machine() == "x86_64" else 1]
    words = [a if isinstance(a, bytes) or a is None else ctypes.c_long(a) for a in arguments]
    libc.syscall.restype = ctypes.c_long
    got = libc.syscall(ctypes.c_long(number), *words)
    if got < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return got


def call(function, *arguments):
    """Calls a function of the C library and raises OSError if it fails."""
    got = getattr(libc, function)(*arguments)
    if got < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return got


def in_child(action):
    """Runs action in a forked process and returns what it returned, as text.
    Effects on the child process do not matter to the attack, which continues here."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            got = action()
            text = "" if got is None else "got " + repr(got)
        except OSError as error:
            text = f"error {error.errno or 0} {error}"
        except BaseException as error:
            text = f"broken {error!r}"
        os.write(write, text.encode()[:60000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if text.startswith("error "):
        _, code, message = text.split(" ", 2)
        raise OSError(int(code), message)
    if text.startswith("broken ") or status > 0:
        raise RuntimeError(text or f"the child ended with status {status}")
    if status < 0:
        raise OSError(0, f"the child was ended by signal {-status}")
    return text[4:] or None


def broker():
    """Opens one more connection to the host's end of the run, beside the guest's."""
    s = socket.socket(socket.AF_UNIX)
    s.connect("/run/airlock/broker.sock")
    return s


def frame(method, params, id=1, **more):
    """One request as docs/socket.md describes it."""
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params, **more}).encode() + b"\n"


def ask(s, request):
    """Sends a frame and returns the answer's result."""
    s.sendall(request)
    line = b""
    while not line.endswith(b"\n"):
        part = s.recv(1 << 16)
        if not part:
            raise ConnectionError("the host has hung up")
        line += part
    return json.loads(line)["result"]


# Numbers of system calls on x86-64 and on arm64.
NUMBERS = {
    "ptrace": (101, 117), "syslog": (103, 116), "capset": (126, 91), "mknodat": (259, 33), "pivot_root": (155, 41),
    "swapon": (167, 224), "reboot": (169, 142), "acct": (163, 89), "sethostname": (170, 161),
    "init_module": (175, 105), "delete_module": (176, 106), "finit_module": (313, 273),
    "kexec_load": (246, 104), "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "unshare": (272, 97), "setns": (308, 268), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "kcmp": (312, 272), "perf_event_open": (298, 241), "fanotify_init": (300, 262),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "clock_settime": (227, 112),
    "clock_adjtime": (305, 266), "settimeofday": (164, 170), "bpf": (321, 280), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "clone3": (435, 435),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "memfd_secret": (447, 447),
    "landlock_create_ruleset": (444, 444), "quotactl": (179, 60), "lookup_dcookie": (212, 18), "ioprio_set": (251, 30),
    "sched_setattr": (314, 274), "mbind": (237, 235), "migrate_pages": (256, 238), "vhangup": (153, 58),
    "process_madvise": (440, 440), "mount_setattr": (442, 442), "fsmount": (432, 432), "fsconfig": (431, 431),
}
