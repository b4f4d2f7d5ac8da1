package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// issue 27: servers, profiles and auth change while a daemon serves. A person must confirm a change that
// permits more. A change that is not in force is shown by status and /readyz, and the commands of an
// operator work with a broken file.
func TestServersChangeWhileADaemonServes(t *testing.T) {
	testenv.OwnHome(t, "python")
	dir := t.TempDir()
	file := filepath.Join(dir, "airlock.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("AIRLOCK_CONFIG", file)
	oneURL, _ := counter(t)
	twoURL, two := counter(t)
	one := "mcpServers:\n  one: {url: " + oneURL + "}\n"
	both := one + "  two: {url: " + twoURL + "}\n"
	const trusted = "servers:\n  one: {trustAnnotations: true}\n  two: {trustAnnotations: true}\n"
	write(one)
	ann := newPerson(t)
	atTerminal := func(args string) string {
		return ann.does(fmt.Sprintf("env AIRLOCK_HOME=%s AIRLOCK_RUNSC=%s %s %s", os.Getenv("AIRLOCK_HOME"),
			os.Getenv("AIRLOCK_RUNSC"), ownProgram(), args))
	}
	url, stderr, code := airlock(t, "serve", "--detach", "--listen", "127.0.0.1:0")
	if code != 0 {
		t.Fatalf("serve: got %d, %s", code, stderr)
	}
	url = strings.TrimSpace(url)
	defer airlock(t, "stop")
	get := func(path string) (int, string) {
		t.Helper()
		res, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	// status asks until the change of a file has been noticed.
	status := func(want func(pending string) bool) {
		t.Helper()
		testenv.Await(t, "another status", func() bool {
			stdout, stderr, code := airlock(t, "status", "--json")
			var s struct{ Pending string }
			if err := json.Unmarshal([]byte(stdout), &s); err != nil || code != 0 {
				t.Fatalf("status: got %d, %s, %s", code, stdout, stderr)
			}
			return want(s.Pending)
		})
	}

	const keys = "auth: {issuer: \"https://login.example\", audience: \"https://airlock.example/mcp\"}\n"
	if code, body := get("/.well-known/oauth-protected-resource"); code != http.StatusNotFound {
		t.Errorf("metadata without auth: got %d, %s", code, body)
	}
	write(both + trusted + keys)
	status(func(pending string) bool { return strings.Contains(pending, "mcpServers.two") })
	if stdout, stderr, code := airlock(t, "servers", "list"); code != 0 || !regexp.MustCompile(`(?m)^two +waiting`).
		MatchString(stdout) || !strings.Contains(stderr, "hint: look at the difference "+
		"and confirm it in your own terminal: airlock trust ") {
		t.Errorf("a server that waits for confirmation: got %d, %s, %s", code, stdout, stderr)
	}
	if got := atTerminal("trust --yes " + file); !strings.HasPrefix(got, "0 ") {
		t.Fatalf("confirming: got %s", got)
	}
	status(func(pending string) bool { return pending == "" })
	if code, body := get("/.well-known/oauth-protected-resource"); code != http.StatusOK ||
		!strings.Contains(body, "https://login.example") {
		t.Errorf("metadata with auth: got %d, %s", code, body)
	}
	program := filepath.Join(dir, "p.py")
	if err := os.WriteFile(program, []byte("from servers import two\nawait two.count()\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, code := airlock(t, "run", program); code != 0 || two.Load() != 1 {
		t.Errorf("calling the added server: got %d, %s, %s", code, stdout, stderr)
	}

	// Less needs no confirmation: the disabled server and the issuer are gone.
	write(strings.Replace(both, "two: {", "two: {disabled: true, ", 1) + "servers:\n  one: {trustAnnotations: true}\n")
	for code := http.StatusOK; code == http.StatusOK; {
		status(func(pending string) bool {
			if pending != "" {
				t.Fatalf("less is not in force: %s", pending)
			}
			return true
		})
		code, _ = get("/.well-known/oauth-protected-resource")
	}
	if _, _, code := airlock(t, "run", program); code != 1 || two.Load() != 1 {
		t.Errorf("calling the disabled server: got %d with %d calls", code, two.Load())
	}

	write(one + "sandbox: {memory: 1GiB}\n")
	status(func(pending string) bool { return strings.Contains(pending, "sandbox.memory cannot change") })
	if code, body := get("/readyz"); !strings.Contains(body, "a changed configuration is not in force") {
		t.Errorf("readyz: got %d, %s", code, body)
	}
	write("mcpServers: {\n")
	for _, args := range [][]string{
		{"status"}, {"tokens", "list", "--json"}, {"tokens", "create", "x", "--scope", "run"}, {"runs", "list"},
		{"audit", "tail"}, {"audit", "verify"}, {"console"}, {"stop"},
	} {
		if stdout, stderr, code := airlock(t, args...); code != 0 {
			t.Errorf("%q with a broken configuration: got %d, %s, %s", args, code, stdout, stderr)
		}
	}
}

// issue 27: without a confirmed configuration, the audit log that a broken file names is used.
func TestABrokenConfigurationStillNamesTheLog(t *testing.T) {
	testenv.OwnHome(t, "python")
	dir := t.TempDir()
	file := filepath.Join(dir, "airlock.yaml")
	t.Setenv("AIRLOCK_CONFIG", file)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("audit: {path: log}\n")
	if _, stderr, code := airlock(t, "tokens", "create", "x", "--scope", "run"); code != 0 {
		t.Fatalf("got %d, %s", code, stderr)
	}
	write("audit: {path: log}\nserver: {}\n")
	stdout, stderr, code := airlock(t, "audit", "tail")
	if code != 0 || !strings.Contains(stdout, "token made for") || !strings.Contains(stderr, "defaults are used") {
		t.Errorf("got %d, %s, %s", code, stdout, stderr)
	}
}
