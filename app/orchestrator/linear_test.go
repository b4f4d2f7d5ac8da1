package orchestrator

import (
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/internal/visible"
	"github.com/airlock-mcp/airlock/redact"
	"github.com/airlock-mcp/airlock/runner"
)

// processed are the functions that read what a program prints, returns or attaches.
var processed = map[string]func(text string){
	"visible.Text":        func(s string) { visible.Text(s) },
	"visible.Lines":       func(s string) { visible.Lines(s) },
	"visible.Clip":        func(s string) { visible.Clip(s, len(s)/2) },
	"truncate.Head":       func(s string) { truncate.Head(s, len(s)-1) },
	"truncate.Tail":       func(s string) { truncate.Tail(s, len(s)-1) },
	"truncate.Characters": func(s string) { truncate.Characters(s, len(s)-1) },
	"cut":                 func(s string) { cut(s, len(s)/2) },
	"printable": func(s string) {
		printable(
			s, runner.Output{Head: []byte(s), Total: int64(len(s))}, int64(len(s)/2))
	},
	"lastJSON":          func(s string) { logs{lastLines: []byte(s)}.lastJSON() },
	"Refused":           func(s string) { Refused(Request{Language: "python"}, "1", errortype.RateLimit, s) },
	"preview":           func(s string) { preview(encoded(s)) },
	"preview of a list": func(s string) { preview([]byte("[" + strings.Repeat(string(encoded(s))+",", 3) + "1]")) },
	"fileOf":            func(s string) { fileOf(encoded(s)) },
	"soFar": func(s string) {
		soFar(redact.New(), runner.Output{Head: []byte(s), Total: int64(len(s))}, int64(len(s)/2))
	},
	"canon.Indent":       func(s string) { canon.Indent([]byte(s)) },
	"canon.JSON":         func(s string) { _, _ = canon.JSON([]byte(s)) },
	"canon.IsDeep":       func(s string) { canon.IsDeep([]byte(s)) },
	"attachment.Inspect": func(s string) { attachment.Inspect([]byte(s), "", "a.txt") },
	"attachment.UTF16":   func(s string) { attachment.UTF16([]byte(s)) },
	"seal": func(s string) {
		result := Result{OK: true, Data: encoded(s)}
		seal(&Envelope{Result: result}, result)
	},
}

// repetitions are texts that make programs slow which read them more than once, and the beginnings of files.
var repetitions = append([]string{
	"GIF89a", "\x89PNG\r\n\x1a\n", "RIFF0000WAVE", "\xff\xd8\xff\xe0", "ID3", "%PDF-",
}, testenv.Repetitions...)

// Issue 23: the cost of what a program prints grows with its length and not faster, in every function that reads it and
// for any repeated text.
func FuzzProcessingIsLinear(f *testing.F) {
	for _, unit := range repetitions {
		f.Add(unit)
	}
	f.Fuzz(func(t *testing.T, unit string) {
		if unit == "" || len(unit) > 256 {
			return
		}
		testenv.LinearTexts(t, []string{unit}, 16<<10, processed)
	})
}
