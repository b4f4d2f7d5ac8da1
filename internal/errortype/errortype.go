// Package errortype names the error types and sources that are visible to code and models.
// docs/contract.md defines their meaning; the names are part of that contract.
package errortype

// Causes of the end of a run that the host found.
const (
	InvalidRequest  = "InvalidRequest" // the run did not start
	Memory          = "MemoryLimit"
	Processes       = "ProcessLimit"
	Disk            = "DiskLimit"
	NonZeroExit     = "NonZeroExit"
	NotSerializable = "ResultNotSerializable"
)

// Errors of calls, searches and runs.
const (
	Output  = "OutputLimit"
	Timeout = "Timeout"
	Killed  = "Killed"
	// Interrupted is for a run or call that had begun when Airlock ended.
	Interrupted = "Interrupted"
	Sandbox     = "SandboxError"
	RateLimit   = "RateLimit"
)

// Errors of calls.
const (
	Tool             = "ToolError" // the tool returned an error
	Validation       = "ValidationError"
	OutputValidation = "OutputValidationError"
	UnknownTool      = "UnknownTool"
	PolicyDenied     = "PolicyDenied"
	ApprovalDenied   = "ApprovalDenied"
	ApprovalTimeout  = "ApprovalTimeout"
	Budget           = "BudgetExceeded"
	Loop             = "LoopDetected"
	Transient        = "TransientNetwork"
)

// Sources of an error.
const (
	SourceCode    = "code"
	SourceTool    = "tool"
	SourceBroker  = "broker"
	SourceSandbox = "sandbox"
)

// IsDenial reports whether an error type means that policy or a person refused a call.
func IsDenial(errorType string) bool {
	return errorType == PolicyDenied || errorType == ApprovalDenied || errorType == ApprovalTimeout
}

// Known reports whether a type is one of this package's: programs raise errors of
// any type.
func Known(errorType string) bool {
	switch errorType {
	case InvalidRequest, Memory, Processes, Disk, NonZeroExit, NotSerializable, Output, Timeout, Killed, Interrupted,
		Sandbox, RateLimit,
		Tool, Validation, OutputValidation, UnknownTool, PolicyDenied, ApprovalDenied, ApprovalTimeout, Budget, Loop,
		Transient:
		return true
	}
	return false
}
