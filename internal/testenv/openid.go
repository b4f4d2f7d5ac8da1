package testenv

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// OpenIDProvider is bin/oidc-provider of build/oidc, an authorization server that
// forgets everything when it ends.
type OpenIDProvider struct {
	Issuer string // http://HOST:PORT

	stop func()
	in   io.Writer
	out  *bufio.Reader
}

// StartOpenIDProvider starts one with flags of the program's own; it ends with the test.
// `make setup` builds it: without that the test fails.
func StartOpenIDProvider(t testing.TB, flags ...string) *OpenIDProvider {
	t.Helper()
	program := filepath.Join(RepoRoot(t), "bin", "oidc-provider")
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("the OpenID provider is not built: %v\nhint: run make setup", err)
	}
	command := exec.Command(program, flags...)
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		stdin.Close()
		command.Wait() // it ends with its stdin
	})
	t.Cleanup(stop)
	out := bufio.NewReader(stdout)
	issuer, err := out.ReadString('\n')
	if err != nil {
		t.Fatalf("starting the OpenID provider: %v", err)
	}
	return &OpenIDProvider{Issuer: strings.TrimSpace(issuer), stop: stop, in: stdin, out: out}
}

// Stop ends the provider before the test does.
func (p *OpenIDProvider) Stop() { p.stop() }

// Obey has the provider do what a line says, such as "rotate" or "clock 10m".
func (p *OpenIDProvider) Obey(t testing.TB, line string) {
	t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
	if answer, err := p.out.ReadString('\n'); err != nil || answer != "done\n" {
		t.Fatalf("%s: got %q, %v", line, answer, err)
	}
}
