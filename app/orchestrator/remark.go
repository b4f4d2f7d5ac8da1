package orchestrator

import (
	"strings"

	"github.com/airlock-mcp/airlock/internal/truncate"
)

// The most that a remark may take, in bytes.
const (
	maxNote    = 1 << 10
	maxPrinted = 4 << 10
)

// The notes of the host, where the guest could not say one.
const (
	noteNoResult = "the code has not set `result`"
	noteExited   = "the program ended without its exit hooks (os._exit, process.reallyExit), so a result that it had set is lost"
)

// remark says why a run that is ok has no data although the code may have meant
// some, and returns the end of what it printed. Both are redacted, and empty where
// the code has set a result that the guest has nothing to say of, its last line is one, or it has attached what it meant.
func (r *run) remark(ended ending, result Result, logs logs) (note, printed string) {
	if r.request.Script != nil || !result.OK || string(result.Data) != "null" || logs.lastJSON() != nil || len(r.files.draft.Files()) > 0 {
		return "", ""
	}
	switch {
	case ended.delivered == nil:
		note = noteExited
	case ended.delivered.HasResult && ended.delivered.Note == "":
		return "", ""
	case ended.delivered.Note == "":
		note = noteNoResult
	default:
		note = r.redact(ended.delivered.Note)
	}
	// What is found in here is found again, and counted, in the logs.
	cleaned, _ := r.redactor.Bytes(logs.lastLines)
	return cut(note, maxNote), truncate.Tail(strings.ToValidUTF8(string(cleaned), "\uFFFD"), maxPrinted)
}
