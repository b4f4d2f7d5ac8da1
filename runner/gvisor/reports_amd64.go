package gvisor

// olderCalls are what else makes processes on this architecture.
func olderCalls() []tracePoint {
	return []tracePoint{{Name: "syscall/fork/exit"}, {Name: "syscall/vfork/exit"}}
}
