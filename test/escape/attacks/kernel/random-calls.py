# tries: to crash the kernel with random system calls and random arguments
# stopped by: gVisor checks every argument; were it to crash, only this sandbox would end
# want: nothing
# timeout: 60s

import random
chosen = random.Random(20260905)
values = [0, 1, -1, 2, 3, 7, 255, 4096, 1 << 31, (1 << 63) - 1, -(1 << 63), 0xdeadbeef, -100]
# Not those that end or stop the program itself, or wait for ever (x86-64 numbers; others elsewhere, as good).
spared = {
    15, 34, 35, 56, 57, 58, 60, 61, 62, 200, 231, 234, 130, 128, 23, 270, 7, 271, 230, 247, 129, 297, 202, 219, 0, 19,
    17, 295, 232, 281, 73, 71, 240, 243, 45, 43, 47, 288, 299, 449}
def batch(seed):
    turn = random.Random(seed)
    import signal
    signal.alarm(2)
    memory = ctypes.create_string_buffer(1 << 16)
    for _ in range(200):
        number = turn.randrange(0, 470)
        if number in spared:
            continue
        words = [ctypes.c_long(turn.choice(values + [ctypes.addressof(memory)] * 5)) for _ in range(6)]
        libc.syscall(ctypes.c_long(number), *words)
for seed in range(25):
    try:
        in_child(lambda: batch(seed))
    except (OSError, RuntimeError) as error:
        print(f"harmless: batch {seed}: {error}")  # the child has hurt itself
print("harmless: the kernel has survived")
