package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/cli"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// airlock runs a verb and returns what it printed on stdout.
func airlock(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := cli.Main(t.Context(), args, strings.NewReader(""), &stdout, &stderr); code != verb.ExitDone {
		t.Fatalf("airlock %s: exit code %d: %s", strings.Join(args, " "), code, stderr.String())
	}
	return strings.TrimSpace(stdout.String())
}

// TestServe creates a token, serves, registers an agent over HTTP and revokes the token, with the
// commands that a user types.
func TestServe(t *testing.T) {
	testenv.OwnHome(t, "python")
	t.Chdir(t.TempDir())
	token := airlock(t, "tokens", "create", "laptop", "--scope", "agents")
	id := strings.Fields(airlock(t, "tokens", "list"))[0]

	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan int)
	var stderr bytes.Buffer
	go func() {
		ended <- cli.Main(ctx, []string{"serve", "--listen", "127.0.0.1:0"}, strings.NewReader(""), in, &stderr)
	}()
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url = strings.TrimSpace(url)

	post := func(body string) int {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/agents", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return response.StatusCode
	}
	if status := post(`{"name": "Analyst", "type": "supervised"}`); status != http.StatusCreated {
		t.Errorf("registering: %d", status)
	}
	if list := airlock(t, "agents", "list"); !strings.Contains(list, "Analyst") {
		t.Errorf("another process sees %q", list)
	}
	airlock(t, "tokens", "revoke", id)
	if status := post(`{"name": "Second", "type": "supervised"}`); status != http.StatusUnauthorized {
		t.Errorf("a revoked token: %d", status)
	}
	stop()
	if code := <-ended; code != verb.ExitDone {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}

// An address that is in use, and one that cannot be used, are reported with a hint.
func TestServeSaysWhatToDoAboutAnAddress(t *testing.T) {
	testenv.OwnHome(t, "python")
	t.Chdir(t.TempDir())
	var lc net.ListenConfig
	other, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for address, want := range map[string]string{
		other.Addr().String(): "hint: stop the program that listens there, or name another address: serve.listen, " +
			"--listen",
		"127.0.0.1:99999": "hint: name an address and a port that can be opened: serve.listen, --listen",
	} {
		var stdout, stderr bytes.Buffer
		code := cli.Main(t.Context(), []string{"serve", "--listen", address}, strings.NewReader(""), &stdout, &stderr)
		if code != verb.ExitUsage || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: got exit code %d and %q, want %d and %q", address, code, stderr.String(), verb.ExitUsage,
				want)
		}
	}
}
