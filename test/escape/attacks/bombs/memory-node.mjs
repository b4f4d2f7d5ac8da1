// tries: to use all memory of the host from JavaScript, outside of the heap that the engine limits
// stopped by: the control group of the sandbox limits its memory, gVisor's own included
// want: MemoryLimit

const hoard = []
for (;;) hoard.push(Buffer.alloc(16 << 20, Math.random().toString()))
