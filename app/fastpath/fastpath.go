// Package fastpath runs the program of `airlock run` in a daemon before the rest of
// Airlock is initialised. The initialisation of all linked packages, with its page faults,
// takes longer than most programs.
//
// Go initialises packages in the order of their import paths as soon as their imports are
// initialised (The Go Programming Language Specification, "Program initialization"; the
// linker applies this to the whole program since Go 1.21). This package has few imports, so
// it is initialised before large packages. In another order it would be slower and do the
// same.
//
// It handles only the common case, and prints no messages and asks no questions. It exits
// the process only if a run has an outcome and the outcome was printed. Everything else is
// left to package cli: as if this package did not exist or, after the program was sent, with
// the connection that will receive the outcome. See docs/design/0019-the-fast-path.md.
package fastpath

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/app/configfile"
	"github.com/airlock-mcp/airlock/app/join"
	"github.com/airlock-mcp/airlock/app/release"
	"github.com/airlock-mcp/airlock/internal/program"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/tty"
)

// begun is a variable because what sets it has to happen before main.main.
var begun = begin(os.Args)

// path is what the fast path has done until it left the command to the rest of the program.
type path struct {
	signals chan os.Signal // nil: none are listened to
	stdin   io.Reader      // with what was read of it
	sent    *Run           // nil: no program was sent
}

// Run is a program that was sent to a daemon, whose outcome was not awaited.
type Run struct {
	Request join.RunRequest
	Conn    *join.Conn // includes everything that the daemon has sent
}

// Sent returns the program of this process's command line that a daemon runs, or nil.
func Sent() *Run { return begun.sent }

// Stdin is the standard input, with what was read of it already.
func Stdin() io.Reader { return begun.stdin }

// Interrupted reports whether a signal came that asks the process to end, and listens no
// more: it is called once, when the caller listens.
func Interrupted() bool {
	if begun.signals == nil {
		return false
	}
	signal.Stop(begun.signals)
	return len(begun.signals) > 0
}

// begin does what can be done of a command line. A link under another name is another
// program, see cli.Named.
func begin(args []string) *path {
	p := &path{stdin: os.Stdin}
	if len(args) < 2 || filepath.Base(args[0]) != "airlock" {
		return p
	}
	command, understood := Parse(args[1:])
	if !understood {
		return p
	}
	source, found := readConfiguration(command.Config)
	if !found {
		return p
	}
	code, found := p.read(command)
	if !found || len(bytes.TrimSpace(code)) == 0 || !utf8.Valid(code) { // which is refused before a daemon is asked
		return p
	}
	hello := join.Hello{Purpose: join.PurposeRun, Version: release.Version, Source: source, Profile: command.Profile}
	p.run(hello, join.RunRequest{Language: command.Language, Code: code, Timeout: command.Timeout})
	return p
}

// readConfiguration returns the digest of the configuration's file, which may be named. It
// finds nothing if no daemon has a socket.
func readConfiguration(named string) (source string, found bool) {
	file := named
	if file == "" {
		dir, err := os.Getwd()
		if err != nil {
			return "", false
		}
		file = configfile.Find(dir, os.LookupEnv)
	}
	if file != "" {
		var err error
		if file, err = filepath.Abs(file); err != nil {
			return "", false
		}
	}
	socket, err := join.Path()
	if err != nil {
		return "", false
	}
	if _, err := os.Lstat(socket); err != nil {
		return "", false
	}
	var data []byte
	if file != "" {
		if data, err = readRegular(file, configfile.MaxSize); err != nil {
			return "", false
		}
	}
	return configfile.Digest(file, data, os.LookupEnv), true
}

var errUnusual = errors.New("no file, or a large one")

// readRegular reads a file that can be read again.
func readRegular(name string, most int64) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, errUnusual
	}
	data, err := store.ReadFile(name)
	if int64(len(data)) > most {
		return nil, errUnusual
	}
	return data, err
}

// read returns the code to run.
func (p *path) read(command Command) (code []byte, read bool) {
	if command.File != "-" {
		code, err := readRegular(command.File, program.MaxSize)
		return code, err == nil
	}
	if tty.Is(os.Stdin) { // a person types
		return nil, false
	}
	p.listen() // as package cli, which does not let a signal end the reading
	code, err := io.ReadAll(io.LimitReader(os.Stdin, program.MaxSize+1))
	rest := io.Reader(os.Stdin)
	if err != nil {
		rest = failing{err}
	}
	p.stdin = io.MultiReader(bytes.NewReader(code), rest)
	return code, err == nil && len(code) <= program.MaxSize && len(p.signals) == 0
}

// failing is a stream that cannot be read.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// listen has signals that would end the process be kept for Interrupted.
func (p *path) listen() {
	if p.signals != nil {
		return
	}
	p.signals = make(chan os.Signal, 1)
	signal.Notify(p.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A reader that has gone is an error of the write, as in package cli, and no signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// run sends a program to the daemon, if one accepts the greeting, and ends the process
// when its outcome is printed.
func (p *path) run(hello join.Hello, request join.RunRequest) {
	conn, err := join.Dial(hello)
	if err != nil {
		return
	}
	if terminal, err := tty.Open(); err == nil {
		request.Terminal = true
		_ = terminal.Close() // nothing was written
	}
	p.listen()
	p.sent = &Run{request, conn}
	if err := conn.Send(join.FromClient{Run: &request}); err != nil {
		return // the next user of the connection gets the error
	}
	outcome := p.await(conn)
	if outcome == nil {
		return
	}
	if finished(outcome) {
		os.Exit(outcome.ExitCode())
	}
	rest, err := json.Marshal(join.ToClient{Outcome: outcome})
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	conn.Unread(append(rest, '\n'))
}

// noticeDelay is how long an outcome is awaited before a person at a terminal is told what
// is waited for, which package cli does.
const noticeDelay = 150 * time.Millisecond

// await returns the outcome if it is the daemon's first message. It returns nil if another
// message or a signal comes first, or after noticeDelay.
func (p *path) await(conn *join.Conn) *join.RunOutcome {
	over, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		p.interrupt(conn, over)
	}()
	line, err := conn.ReadLine()
	close(over)
	<-stopped
	var message join.ToClient
	if err == nil && strictjson.UnmarshalOpen(line, &message) == nil && message.Outcome != nil {
		return message.Outcome
	}
	conn.Unread(line)
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		_ = conn.Close() // then reading returns the error
	}
	return nil
}

// interrupt ends reading when a signal comes, or noticeDelay ends, before over.
func (p *path) interrupt(conn *join.Conn, over <-chan struct{}) {
	var told <-chan time.Time
	if tty.Is(os.Stderr) {
		told = time.After(noticeDelay)
	}
	select {
	case <-over:
		return
	case signal := <-p.signals:
		select {
		case p.signals <- signal: // for Interrupted
		default: // there is another
		}
	case <-told:
	}
	_ = conn.SetReadDeadline(time.Unix(1, 0)) // if this fails, the connection has ended
}

// finished prints an outcome and reports whether it was printed completely. It removes the
// printed parts from the outcome.
func finished(outcome *join.RunOutcome) bool {
	if tty.Is(os.Stdout) { // package cli shows the result to a person
		return false
	}
	if outcome.Printed != "" {
		if tty.Is(os.Stderr) { // where package cli writes what could steer it as escapes
			return false
		}
		outcome.EndLine(os.Stdout, os.Stderr)
		n, err := os.Stderr.WriteString(outcome.Printed)
		if outcome.Printed = outcome.Printed[n:]; err != nil {
			return false
		}
	}
	n, err := os.Stdout.Write(outcome.Line)
	outcome.Line = outcome.Line[n:]
	return err == nil
}
