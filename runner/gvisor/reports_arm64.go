package gvisor

// olderCalls: this architecture has only clone and clone3.
func olderCalls() []tracePoint { return nil }
