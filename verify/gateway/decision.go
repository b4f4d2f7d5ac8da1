package gateway

import (
	"fmt"
	"strings"

	"github.com/airlock-mcp/airlock/internal/truncate"
)

// The tools that have a handler. admission/risk/actions.json has their risks; a tool that it does not name is blocked.
const (
	ExecuteCode = "execute_python_code"
	JobStatus   = "verification_status"
)

// The statuses of decisions.
const (
	Allowed        = "ALLOW_VERIFIED"
	Blocked        = "BLOCKED"
	BlockedByAdmin = "BLOCKED_ADMIN_POLICY"
)

// The codes of blocked decisions.
const (
	UnknownTool   = "QWED-MCP-RISK-001" // the tool is not in the table
	NoHandler     = "QWED-MCP-RISK-002" // it is, and nothing decides about it
	NoCode        = "QWED-MCP-RISK-003" // `code` is missing or empty
	BadBackground = "QWED-MCP-RISK-004" // `background` is not a boolean
	UnsafeCode    = "QWED-MCP-RISK-005" // the program is not found safe, or the analyser failed
	SwitchedOff   = "QWED-MCP-RISK-006" // the administrator has not switched execution on
	NoJobID       = "QWED-MCP-RISK-007" // `job_id` is missing or empty
	BadJobID      = "QWED-MCP-RISK-008" // `job_id` is not a canonical UUID
)

// Switch is the environment variable that the administrator sets to "true".
const Switch = "QWED_MCP_TRUSTED_CODE_EXECUTION"

// IsTrusted reports whether a value of Switch enables execution.
func IsTrusted(value string) bool { return strings.EqualFold(value, "true") }

// maxArguments is how many bytes of normalised arguments a decision repeats.
const maxArguments = 8 << 20

// Decision is what was decided about one call, as qwed_mcp's
// RiskBasedExecutionGateway.evaluate_and_route returns it.
type Decision struct {
	Verified            bool           `json:"verified"`
	Status              string         `json:"status"`
	RiskLevel           string         `json:"risk_level"`
	VerificationID      string         `json:"verification_id"` // 64 hex digits, another one for each call
	NormalizedArguments map[string]any `json:"normalized_arguments"`
	Message             string         `json:"message"`
	ErrorCode           string         `json:"error_code,omitempty"`
}

// Text returns the message to the caller for a decision that blocks.
func (d Decision) Text() string {
	return fmt.Sprintf("%s: %s (verification_id=%s)", d.Status, d.Message, d.VerificationID)
}

// Code returns the program and whether it is to run in the background, of an
// allowed call of ExecuteCode.
func (d Decision) Code() (code string, background bool) {
	code, _ = d.NormalizedArguments["code"].(string)
	background, _ = d.NormalizedArguments["background"].(bool)
	return code, background
}

// JobID returns the ID that an allowed call of JobStatus asks for.
func (d Decision) JobID() string {
	id, _ := d.NormalizedArguments["job_id"].(string)
	return id
}

// ruling is the result of a handler: the cleaned arguments, or the reason of a refusal.
type ruling struct {
	arguments map[string]any
	message   string
	code      string // empty allows the call
	analysed  bool   // the analyser was asked
}

// maxShownName is how many characters of an unknown tool's name are repeated.
const maxShownName = 128

func shown(tool string) string { return truncate.Characters(tool, maxShownName) }
