package telemetry

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"regexp"
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
	testenv.OwnHome(t, "python")
	url, _ := upstream(t)
	token := map[string]string{}
	for _, scope := range []string{"audit", "run"} {
		token[scope] = output(t, airlock(t, url, nil, "tokens", "create", "--scope", scope, scope))
	}
	var agent struct {
		ID    string `json:"agent_id"`
		Token string `json:"agent_token"`
	}
	made := output(t, airlock(t, url, nil, "agents", "create", "a", "--daily-requests", "4", "--json"))
	if err := json.Unmarshal([]byte(made), &agent); err != nil {
		t.Fatal(err)
	}
	daemon := airlock(t, url, nil, "serve", "--listen", "127.0.0.1:0")
	daemon.Stderr = os.Stderr
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
	for name, want := range map[string]int{"": http.StatusUnauthorized, token["run"]: http.StatusForbidden,
		token["audit"]: http.StatusOK} {
		if got := scrape(name).StatusCode; got != want {
			t.Errorf("with a token of %d characters: got %d, want %d", len(name), got, want)
		}
	}
	// The second one is refused before the transaction, so its record waits for the disk alone.
	for _, context := range []string{`{"conversation_id": "c", "step_number": 1}`, `{}`} {
		act, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			strings.TrimSpace(address)+"/v1/agents/"+agent.ID+"/actions",
			strings.NewReader(`{"action": {"type": "calculate"}, "context": `+context+`}`))
		if err != nil {
			t.Fatal(err)
		}
		act.Header.Set("X-Agent-Token", agent.Token)
		res, err := http.DefaultClient.Do(act)
		if err != nil || res.Body.Close() != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("got %v, %v", res, err)
		}
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(scrape(token["audit"]).Body)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile("../../packaging/prometheus/airlock.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// Issue 24: metrics per agent and budget exist under the names that the alert rules use.
	for _, metric := range regexp.MustCompile(`airlock_(?:agent_actions|budget|approval|queue|audit)[a-z_]+`).
		FindAllString(string(rules), -1) {
		if name := strings.TrimSuffix(metric, "_bucket"); families[name] == nil {
			t.Errorf("the alert rules use %s, and it is not among %d families", name, len(families))
		}
	}
	used := map[string]float64{}
	for _, m := range families["airlock_budget_used_ratio"].GetMetric() {
		of := map[string]string{}
		for _, label := range m.GetLabel() {
			of[label.GetName()] = label.GetValue()
		}
		used[of["airlock_account"]+" "+of["airlock_limit"]] = m.GetGauge().GetValue()
	}
	if got := used["agent:"+agent.ID+" max_requests_per_day"]; got != 0.25 {
		t.Errorf("got %v of the daily requests used, want a quarter; all: %v", got, used)
	}
	for _, name := range []string{"airlock_sandbox_ready", "airlock_sandbox_in_use", "airlock_queue_waiting",
		"airlock_approval_open"} {
		if families[name] == nil {
			t.Errorf("there is no %s among %d families", name, len(families))
		}
	}
}
