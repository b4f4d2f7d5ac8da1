package runsc

import (
	"encoding/json"
	"io"
	"os"
	"strings"
)

// maxLog bounds what is read of runsc's log: the sandbox can write there too.
const maxLog = 64 << 10

// failure returns the reason that runsc itself gave for failing, as one
// sentence, or "" if it gave none. A panic of gVisor's kernel counts.
func failure(stateDir string) string {
	if reason := loggedError(read(logFile(stateDir))); reason != "" {
		return oneLine(reason)
	}
	for line := range strings.Lines(read(panicFile(stateDir))) {
		if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
			return oneLine(line)
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
	decoder := json.NewDecoder(strings.NewReader(log))
	for {
		var entry struct{ Msg, Level string }
		if err := decoder.Decode(&entry); err != nil {
			return ""
		}
		if entry.Level == "error" {
			return entry.Msg
		}
	}
}

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	const longest = 500
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return s
}
