package telemetry

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// output returns what a command of airlock prints, on one line.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	return strings.TrimSpace(string(out))
}

func TestPrometheusReadsTheMetricsOfWhoMayReadTheLog(t *testing.T) {
	testenv.OwnHome(t)
	url, _ := upstream(t)
	token := map[string]string{}
	for _, scope := range []string{"audit", "run"} {
		token[scope] = output(t, airlock(t, url, nil, "tokens", "create", "--scope", scope, scope))
	}
	daemon := airlock(t, url, nil, "serve", "--listen", "127.0.0.1:0")
	stdout, err := daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := daemon.Wait(); err != nil {
			t.Errorf("airlock serve: %v", err)
		}
	}()
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	scrape := func(token string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSpace(address)+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
	for name, want := range map[string]int{"": http.StatusUnauthorized, token["run"]: http.StatusForbidden, token["audit"]: http.StatusOK} {
		if got := scrape(name).StatusCode; got != want {
			t.Errorf("with a token of %d characters: got %d, want %d", len(name), got, want)
		}
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(scrape(token["audit"]).Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"airlock_sandbox_ready", "airlock_sandbox_in_use", "airlock_queue_waiting", "airlock_approval_open"} {
		if families[name] == nil {
			t.Errorf("there is no %s among %d families", name, len(families))
		}
	}
}
