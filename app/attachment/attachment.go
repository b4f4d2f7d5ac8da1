// Package attachment stores the files that programs attach to their runs for the caller:
// images and sounds for the model, and any other file. The bytes determine the type of a
// file, not the program; metadata is removed from images. Files are encrypted at rest,
// bounded, and expire like recordings.
package attachment

import (
	"net/url"
	"strings"
)

// Kind is how a file reaches the caller.
type Kind string

// The kinds of files.
const (
	Image Kind = "image" // PNG, JPEG, GIF or WebP that decodes, without metadata
	Audio Kind = "audio" // WAV, MP3, FLAC or Ogg
	Other Kind = "file"  // everything else
)

// ResultName is the name under which a large result is kept. No other file of a
// run has it.
const ResultName = "result.json"

// File is what is known about one attached file.
type File struct {
	Name  string `json:"name"`      // unique in its run
	MIME  string `json:"mime_type"` // detected from the bytes, or as declared by the program
	Kind  Kind   `json:"kind"`
	Bytes int64  `json:"bytes"`
	// Note explains in a sentence why the file does not have the declared type.
	Note string `json:"note,omitempty"`
	// Digest is over the bytes as they are kept, sha256:…
	Digest string `json:"digest"`
}

// IsText reports whether the file can be shown as text.
func (f File) IsText() bool {
	switch f.MIME {
	case "application/json", "application/xml", "application/x-ndjson", "application/yaml", "application/javascript",
		"image/svg+xml":
		return true
	}
	return strings.HasPrefix(f.MIME, "text/")
}

// scheme begins the URI of every file.
const scheme = "airlock://runs/"

// Template is the URI template (RFC 6570) of all files.
const Template = scheme + "{run_id}/{name}"

// URI names a file of a run.
func URI(runID, name string) string {
	// All that a template may expand to a name: unreserved characters and escapes.
	return scheme + runID + "/" + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
}

// ParseURI returns the run and the name that a URI has; it reports whether it
// could be the URI of a file.
func ParseURI(uri string) (runID, name string, ok bool) {
	rest, ok := strings.CutPrefix(uri, scheme)
	if !ok {
		return "", "", false
	}
	runID, escaped, ok := strings.Cut(rest, "/")
	if !ok || !runIDForm.MatchString(runID) || strings.Contains(escaped, "/") {
		return "", "", false
	}
	name, err := url.PathUnescape(escaped)
	return runID, name, err == nil && name != ""
}
