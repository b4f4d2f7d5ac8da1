package verb

import (
	"io"
	"os"

	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/redact"
)

// cleanWriter removes secrets from the text that is written to it. Each write is cleaned
// separately, so a message must be one write.
type cleanWriter struct {
	to       io.Writer
	redactor *redact.Redactor
}

// Cleaned returns a writer to w for the messages of verbs, see credentials.Messages.
func Cleaned(w io.Writer) io.Writer { return &cleanWriter{w, credentials.Messages()} }

// Write writes b without secrets. It returns len(b), or 0 and an error.
func (w *cleanWriter) Write(b []byte) (int, error) {
	text, _ := w.redactor.Bytes(b)
	if _, err := w.to.Write(text); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Clean removes secrets from a text in a result, such as the reason why a check failed.
func Clean(text string) string { return credentials.Printed().Text(text) }

// CleanAll calls clean for each text of a list.
func CleanAll(texts []string) []string {
	list := make([]string, len(texts))
	for i, text := range texts {
		list[i] = Clean(text)
	}
	return list
}

// Hold reads the configuration only to learn its credentials. It is called by verbs that end
// before they read the configuration, because they may print a credential that the user typed.
// Errors in the configuration are ignored.
func (f ConfigFlag) Hold() {
	// a pipe cannot be read twice
	if info, err := os.Stat(f.Config); f.Config == "" || err == nil && info.Mode().IsRegular() {
		_, _ = f.LoadPlaces()
	}
}
