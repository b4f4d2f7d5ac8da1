package databasetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Server returns the URL of a PostgreSQL server, which it starts at the first call in a process. The server ends with
// the process. If PostgreSQL is not installed, the test is skipped, or fails with AIRLOCK_TEST_SANDBOX=1.
func Server(t testing.TB) string {
	t.Helper()
	if address := os.Getenv(Variable); address != "" {
		return address
	}
	running, err := server()
	switch {
	case errors.Is(err, errNotInstalled) && !testenv.WantsSandboxes():
		t.Skip("needs PostgreSQL: run `make postgresql`")
	case err != nil:
		t.Fatal(err)
	}
	return running.Address
}

var errNotInstalled = errors.New("PostgreSQL is not installed (run `make postgresql` first)")

// program returns the path of a program of PostgreSQL, which Debian does not have in PATH.
func program(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name) // the pattern is valid
	if len(found) == 0 {
		return "", errNotInstalled
	}
	return found[len(found)-1], nil
}

// lives runs a server until its input ends, and removes the directory.
const lives = `"$@" & server=$!; cat; kill -QUIT $server; wait $server; rm -rf "$DIRECTORY"`

// Instance is a running server.
type Instance struct {
	Address string
	input   io.Closer // the server ends with it, so it must stay reachable
}

// Close ends the server and removes its data.
func (i Instance) Close() error { return i.input.Close() }

// For tests, nothing needs to survive a crash.
var server = sync.OnceValues(func() (Instance, error) { return Start("fsync=off", "autovacuum=off") })

// Start starts a PostgreSQL server with settings of the form NAME=VALUE. The server ends with Close, or with this
// process.
func Start(settings ...string) (started Instance, err error) {
	dir, err := os.MkdirTemp("", "postgresql") // short: a socket is in it
	if err != nil {
		return started, err
	}
	if err := initialize(dir); err != nil {
		return started, err
	}
	return run(dir, settings...)
}

// initialize makes the files of a server in dir.
func initialize(dir string) error {
	made, err := command(dir, "initdb", "--pgdata", filepath.Join(dir, "data"), "--username", "test", "--auth", "trust",
		"--no-sync", "--encoding", "UTF8", "--locale", "C")
	if err != nil {
		return err
	}
	if out, err := made.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// command returns a command of PostgreSQL that uses dir.
func command(dir, name string, args ...string) (*exec.Cmd, error) {
	path, err := program(name)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	cmd.SysProcAttr, err = unprivileged(dir)
	return cmd, err
}

// run starts a server with its files in dir.
func run(dir string, settings ...string) (started Instance, err error) {
	args := []string{"-D", filepath.Join(dir, "data"), "-k", dir}
	for _, setting := range append([]string{"listen_addresses=", "max_connections=200"}, settings...) {
		args = append(args, "-c", setting)
	}
	runs, err := command(dir, "postgres", args...)
	if err != nil {
		return started, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return started, err
	}
	defer log.Close()
	runs.Args = append([]string{"sh", "-c", lives, "sh", runs.Path}, args...)
	runs.Path = "/bin/sh"
	runs.Stdout, runs.Stderr, runs.Env = log, log, append(os.Environ(), "DIRECTORY="+dir)
	if started.input, err = runs.StdinPipe(); err != nil { // it is closed by the end of this process
		return started, err
	}
	if err := runs.Start(); err != nil {
		return started, err
	}
	started.Address = (&url.URL{Scheme: "postgres", Path: "/postgres", RawQuery: url.Values{
		"host": {dir}, "user": {"test"}}.Encode()}).String()
	if err := answers(started.Address); err != nil {
		text, _ := os.ReadFile(log.Name()) // for the message
		return started, fmt.Errorf("starting PostgreSQL: %w\n%s", err, text)
	}
	return started, nil
}

// unprivileged returns the credentials of a server with its data in dir: PostgreSQL refuses to run as root.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	// A signal to the test, such as that of Ctrl-C, ends the server through its input.
	attr := &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() != 0 {
		return attr, nil
	}
	account, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.Atoi(account.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(account.Gid)
	if err != nil {
		return nil, err
	}
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr, os.Chown(dir, uid, gid)
}

func answers(address string) error {
	db, err := sql.Open("pgx", address)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		err := db.PingContext(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond) // between two attempts to connect
	}
}
