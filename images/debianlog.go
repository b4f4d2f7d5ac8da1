package images

import (
	"bytes"
	"fmt"
	"strings"
)

// debianSteps are the lines of mmdebstrap that mark a step worth telling.
var debianSteps = map[string]string{
	"I: running apt-get update...":               "reading Debian's package lists",
	"I: downloading packages with apt...":        "downloading Debian packages",
	"I: extracting archives...":                  "extracting Debian packages",
	"I: creating tarball...":                     "collecting files",
	"I: cleaning package lists and apt cache...": "cleaning up",
}

// maxMessages is how many of mmdebstrap's last lines are kept for a failure.
const maxMessages = 12

// debianMessages reads mmdebstrap's stderr: it reports the steps and keeps the last lines,
// which contain the reason of a failure. It is not safe for concurrent use.
type debianMessages struct {
	say      *progress
	partial  []byte
	last     []string
	sawError bool // it printed an error
}

// Write takes a part of the output.
func (m *debianMessages) Write(p []byte) (int, error) {
	m.partial = append(m.partial, p...)
	for {
		line, rest, ok := bytes.Cut(m.partial, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		m.partial = rest
		m.line(strings.TrimSpace(string(line)))
	}
}

func (m *debianMessages) line(line string) {
	if step, ok := debianSteps[line]; ok {
		m.say.step(step)
	}
	m.sawError = m.sawError || strings.HasPrefix(line, "E: ")
	if m.last = append(m.last, line); len(m.last) > maxMessages {
		m.last = m.last[1:]
	}
}

// noMode is mmdebstrap's message for a user who is not root and has neither a range of user
// IDs nor fakechroot.
const noMode = "E: unable to pick chroot mode automatically"

// failure adds the last lines to mmdebstrap's error, or names what to install if that is
// known.
func (m *debianMessages) failure(err error) error {
	said := strings.Join(m.last, "\n  ")
	if strings.Contains(said, noMode) {
		return &MissingToolError{Tool: "fakechroot", Package: "fakechroot"}
	}
	return fmt.Errorf("mmdebstrap could not fetch the Debian packages: %w\n  %s", err, said)
}
