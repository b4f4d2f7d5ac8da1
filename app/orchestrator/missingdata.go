package orchestrator

import (
	"strings"

	"github.com/airlock-mcp/airlock/internal/truncate"
)

// The maximum sizes of the answers of missingData, in bytes.
const (
	maxNote    = 1 << 10
	maxPrinted = 4 << 10
)

// The host's notes, if the guest could not send one.
const (
	noteNoResult = "the code has not set `result`"
	noteExited   = "the program ended without its exit hooks (os._exit, process.reallyExit), so a result that it had " +
		"set is lost"
)

// missingData returns a note on why a successful run has no data although the code may have
// intended some, and the end of its output. Both are redacted. They are empty if the code
// has set a result without a note of the guest, if its last line is one, or if it has
// attached a file.
func (r *run) missingData(ended ending, result Result, logs logs) (note, printed string) {
	if r.request.Script != nil || !result.OK || string(result.Data) != "null" || logs.lastJSON() != nil ||
		len(r.files.draft.Files()) > 0 {
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
	// Redactions in these lines are counted when the logs are redacted.
	cleaned, _ := r.redactor.Bytes(logs.lastLines)
	return cut(note, maxNote), truncate.Tail(strings.ToValidUTF8(string(cleaned), "\uFFFD"), maxPrinted)
}
