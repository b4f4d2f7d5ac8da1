package cli

import (
	"io"
	"os"

	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/redact"
)

// cleanWriter is a stream without the secrets in what is written to it. Each
// write is cleaned by itself: a message is one write.
type cleanWriter struct {
	to       io.Writer
	redactor *redact.Redactor
}

// cleaned returns w for what verbs say beside results, see system.Messages.
func cleaned(w io.Writer) io.Writer { return &cleanWriter{w, system.Messages()} }

// Write writes what is left of b. It has written all of b or nothing.
func (w *cleanWriter) Write(b []byte) (int, error) {
	text, _ := w.redactor.Bytes(b)
	if _, err := w.to.Write(text); err != nil {
		return 0, err
	}
	return len(b), nil
}

// clean is cleaned for a text among results, such as why a check failed.
func clean(text string) string { return system.Printed().Text(text) }

// cleanAll is clean for each text of a list.
func cleanAll(texts []string) []string {
	list := make([]string, len(texts))
	for i, text := range texts {
		list[i] = clean(text)
	}
	return list
}

// hold reads the configuration for its credentials alone, where a verb ends before
// it has read it: what was typed may be one of them. Whether it is right does not
// matter here.
func (f configFlag) hold() {
	if info, err := os.Stat(f.Config); f.Config == "" || err == nil && info.Mode().IsRegular() { // a pipe cannot be read twice
		_, _ = f.loadPlaces()
	}
}
