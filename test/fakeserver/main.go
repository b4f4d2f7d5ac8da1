// Command fakeserver is a small MCP server on stdio that misbehaves on demand.
// It is written without an SDK, because no SDK lets a server do what hostile,
// broken and slow servers do. Tests start it through
// broker/upstream/upstreamtest.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("fakeserver", flag.ContinueOnError)
	flags.SetOutput(stderr)
	mode := flags.String("mode", "good", "how to behave: "+strings.Join(modes, ", "))
	note := flags.String("note", "", "a file that gets a line for each thing worth noting")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if !slices.Contains(modes, *mode) {
		fmt.Fprintf(stderr, "fakeserver: unknown mode %q\n", *mode)
		return 2
	}
	s := &server{mode: *mode, notes: *note, stdin: stdin, stdout: stdout, stderr: stderr}
	s.note("started %d", os.Getpid())
	return s.behave()
}

// modes are all ways to behave.
var modes = []string{
	"good",         // as the specification demands, for 2025-11-25
	"modern",       // only 2026-07-28: refuses initialize
	"exit",         // exits at once with status 3 and prints the reason
	"exit-secret",  // the same; the output contains the variable SECRET
	"silent",       // reads everything and never answers
	"deaf",         // neither reads nor answers
	"stubborn",     // good, but ignores SIGTERM and the end of stdin
	"rubbish",      // good, with other output between the messages
	"only-rubbish", // prints other output and never answers
	"huge-line",    // good, after a line of 20 MiB
	"strict",       // exits when the first message is not initialize
	"ignoring",     // ignores methods it does not know
	"late",         // good, but silent until it gets initialize, as if it took long to start
	"late-modern",  // modern; the first time that it is started, it is late, too
	"together",     // good, but silent until four with the same notes have started
	"refusing",     // refuses the handshake
	"misshapen",    // answers the handshake with something else
	"three-pages",  // lists its tools on three pages
	"looping",      // the second page leads to itself
	"endless",      // every page leads to another one
	"wrong-types",  // lists items that are not tools, and one that is
	"bad-list",     // answers tools/list with something else
	"huge-list",    // answers tools/list with 20 MiB
	"no-list",      // does not know tools/list
	"brief",        // its list is good for a moment only, and changes
}

// behave does what the mode demands before any message, then serves.
func (s *server) behave() int {
	switch s.mode {
	case "exit":
		fmt.Fprintln(s.stderr, "reading settings")
		fmt.Fprintln(s.stderr, "fatal: no such \x1b[31mdatabase\x1b[0m")
		return 3
	case "exit-secret":
		fmt.Fprintln(s.stderr, "cannot log in with", os.Getenv("SECRET"))
		return 3
	case "deaf":
		syscall.Pause()
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		s.serve()
		syscall.Pause()
	case "only-rubbish":
		fmt.Fprintln(s.stdout, "Listening on port 8080")
	case "late":
		s.late = true
	case "late-modern":
		s.late = s.starts() == 1
	case "together":
		for s.starts() < 4 {
			time.Sleep(10 * time.Millisecond)
		}
	case "huge-line":
		fmt.Fprintln(s.stdout, strings.Repeat("x", 20<<20))
	}
	return s.serve()
}

// starts counts how often a server with these notes was started.
func (s *server) starts() int {
	notes, err := os.ReadFile(s.notes)
	if err != nil {
		fmt.Fprintln(s.stderr, "fakeserver:", err)
	}
	return strings.Count(string(notes), "started ")
}

// note appends a line to the file of notes.
func (s *server) note(format string, args ...any) {
	if s.notes == "" {
		return
	}
	f, err := os.OpenFile(s.notes, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(s.stderr, "fakeserver:", err)
		return
	}
	defer f.Close()
	fmt.Fprintf(f, format+"\n", args...)
}
