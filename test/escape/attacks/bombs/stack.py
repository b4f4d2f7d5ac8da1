# tries: to overflow the stack of native code
# stopped by: the process ends as it would anywhere; the host sees a dead guest
# want: Killed or NonZeroExit

callback = ctypes.CFUNCTYPE(None)
sys.setrecursionlimit(10**9)
def down():
    callback(down)()
ctypes.string_at(0)
