package gvisor

import (
	"io"
	"os"
	"strings"

	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/truncate"
)

// maxLog bounds what is read of runsc's log: the sandbox can write there too.
const maxLog = 64 << 10

// Failure returns the reason that runsc itself gave for failing, as one
// sentence, or "" if it gave none. A panic of gVisor's kernel counts. log and
// panics are the files that it was given for its log, as JSON, and its panics.
func Failure(log, panics string) string {
	if reason := loggedError(read(log)); reason != "" {
		return OneLine(reason)
	}
	for line := range strings.Lines(read(panics)) {
		if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
			return OneLine(line)
		}
	}
	return ""
}

func read(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxLog))
	if err != nil {
		return ""
	}
	return string(data)
}

// loggedError finds the first error in a log of JSON objects that need no
// separator between them. The later ones are its consequences.
func loggedError(log string) string {
	decoder := strictjson.NewDecoder(strings.NewReader(log))
	for {
		var entry struct {
			Msg   string `json:"msg"`
			Level string `json:"level"`
		}
		if err := decoder.DecodeOpen(&entry); err != nil {
			return ""
		}
		if entry.Level == "error" {
			return entry.Msg
		}
	}
}

// OneLine makes one line of at most 500 bytes of a text that a sandbox may have written.
func OneLine(s string) string {
	const longest = 500
	return truncate.Bytes(strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "\uFFFD"), longest)
}
