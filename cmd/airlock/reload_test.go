package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Serving goes on through SIGHUP, which has the files read again; a change of a
// file needs no signal.
func TestServingReloads(t *testing.T) {
	testenv.OwnHome(t, "python")
	file := filepath.Join(t.TempDir(), "airlock.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const server = "mcpServers: {files: {command: cat}}\n"
	write(server)
	cmd := exec.Command(filepath.Join(testenv.RepoRoot(t), "bin", "airlock"), "mcp", "--config", file)
	in, out, stderr := pipes(t, cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`+"\n")
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "serverInfo") {
		t.Fatalf("got %q, %v, want the answer to initialize", line, err)
	}
	lines := bufio.NewScanner(stderr)
	expect := func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("stderr ended without %q", want)
	}
	hangUp := func() {
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	hangUp()
	expect("nothing has changed")
	write(server + "servers: {files: {deny: [delete]}}\n")
	expect("changed and in force: servers.files")
	write(server + "sandbox: {memory: 1GiB}\n")
	expect("sandbox.memory cannot change while Airlock serves")
	expect("hint: restart it")
	hangUp()
	expect("sandbox.memory cannot change while Airlock serves")
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	for lines.Scan() { // to its end
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func pipes(t *testing.T, cmd *exec.Cmd) (io.WriteCloser, io.Reader, io.Reader) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	return in, out, stderr
}
