package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Issue 26: the documented command installs the wheel that `make dist` builds into a new virtual environment, and the
// documented programs run there with their documented output. The wheel has the same bytes each time.
func TestTheDocumentedCommandInstallsTheWheel(t *testing.T) {
	dir := t.TempDir()
	r := &release{root: "../..", out: dir, time: time.Unix(1700000000, 0).UTC()}
	var before []byte
	for range 2 {
		name, err := r.wheel()
		if err != nil {
			t.Fatal(err)
		}
		wheel, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if before != nil && !bytes.Equal(before, wheel) {
			t.Error("the wheel differs between two builds of the same sources")
		}
		before = wheel
	}
	readme, err := os.ReadFile("../../sdk/python/README.md")
	if err != nil {
		t.Fatal(err)
	}
	environment := filepath.Join(dir, "environment")
	run := func(command ...string) string {
		t.Helper()
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + filepath.Join(environment, "bin") + ":" + os.Getenv("PATH"), "HOME=" + dir}
		for _, name := range []string{"PIP_INDEX_URL", "PIP_CERT", "HTTPS_PROXY", "https_proxy", "SSL_CERT_FILE"} {
			if value, ok := os.LookupEnv(name); ok {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
		}
		return string(out)
	}
	run("python3", "-m", "venv", environment)
	commands := regexp.MustCompile("(?m)^\\$ (.+)\n([^$`]*)").FindAllStringSubmatch(string(readme), -1)
	if len(commands) < 3 || !strings.HasPrefix(commands[0][1], "python3 -m pip install ./airlock_verify-") {
		t.Fatalf("got the commands %q, want the installation first", commands)
	}
	for i, command := range commands {
		if got := run("sh", "-c", command[1]); i > 0 && got != command[2] {
			t.Errorf("%s: got %q, want %q", command[1], got, command[2])
		}
	}
	for _, program := range regexp.MustCompile("(?s)```python\n(.*?)```").FindAllStringSubmatch(string(readme), -1) {
		run(filepath.Join(environment, "bin", "python3"), "-c", program[1])
	}
}
