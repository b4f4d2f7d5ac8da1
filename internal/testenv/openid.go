package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// OpenIDProvider is bin/oidc-provider of build/oidc, an authorization server that
// forgets everything when it ends.
type OpenIDProvider struct {
	Issuer string // http://HOST:PORT

	program *Program
}

// StartOpenIDProvider starts one with flags of the program's own; it ends with the test.
// `make setup` builds it: without that the test fails.
func StartOpenIDProvider(t testing.TB, flags ...string) *OpenIDProvider {
	t.Helper()
	program := filepath.Join(RepoRoot(t), "bin", "oidc-provider")
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("the OpenID provider is not built: %v\nhint: run make setup", err)
	}
	running := StartProgram(t, exec.Command(program, flags...))
	issuer, err := running.Out.ReadString('\n')
	if err != nil {
		t.Fatalf("starting the OpenID provider: %v\n%s", err, running.Err)
	}
	return &OpenIDProvider{Issuer: strings.TrimSpace(issuer), program: running}
}

// Stop ends the provider before the test does.
func (p *OpenIDProvider) Stop() { _ = p.program.End() }

// Obey sends the provider a command, such as "rotate" or "clock 10m".
func (p *OpenIDProvider) Obey(t testing.TB, line string) {
	t.Helper()
	if answer, err := p.program.Ask([]byte(line)); err != nil || string(answer) != "done" {
		t.Fatalf("%s: got %q, %v", line, answer, err)
	}
}
