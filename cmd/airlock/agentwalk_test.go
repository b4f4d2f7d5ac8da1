package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// decided is the answer to an announced action.
type decided struct {
	Decision   string   `json:"decision"`
	Policies   []string `json:"policies"`
	ApprovalID string   `json:"approval_id"`
	Error      struct {
		Code string `json:"code"`
	} `json:"error"`
}

// announce announces an action over HTTP with the agent's token.
func (i *installation) announce(url, id, token, action, step string) decided {
	i.Helper()
	body := fmt.Sprintf(`{"action": %s, "context": {"conversation_id": "walk", "step_number": %s}}`, action, step)
	req, err := http.NewRequestWithContext(i.Context(), http.MethodPost, url+"/v1/agents/"+id+"/actions",
		bytes.NewReader([]byte(body)))
	if err != nil {
		i.Fatal(err)
	}
	res, err := (&http.Client{Transport: agentToken(token)}).Do(req)
	if err != nil {
		i.Fatal(err)
	}
	defer res.Body.Close()
	var d decided
	if err := json.NewDecoder(res.Body).Decode(&d); err != nil || res.StatusCode != http.StatusOK {
		i.Fatalf("%s: %s, %v", body, res.Status, err)
	}
	return d
}

var quoted = regexp.MustCompile("`([^`]+)`")

// cells are the columns of a line of a table, nil for another line.
func cells(line string) []string {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") {
		return nil
	}
	columns := strings.Split(strings.Trim(line, "|"), "|")
	for i, column := range columns {
		columns[i] = strings.TrimSpace(column)
	}
	return columns
}

// words are what is quoted in a cell.
func words(cell string) []string {
	list := []string{}
	for _, match := range quoted.FindAllStringSubmatch(cell, -1) {
		list = append(list, match[1])
	}
	return list
}

// The walk of docs/agents.md from registration to suspension works as documented, and each
// decision names the documented policy..
func TestTheWalkOfTheDocs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testenv.RepoRoot(t), "docs", "agents.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## One agent, from registration to suspension\n")
	section, _, ended := strings.Cut(section, "\n## ")
	_, config, configured := strings.Cut(section, "```yaml\n")
	config, _, closed := strings.Cut(config, "```")
	if !found || !ended || !configured || !closed {
		t.Fatal("docs/agents.md has no such section")
	}
	i := newInstallation(t, config, "python")
	url := i.serve()
	var id, token, approval string
	answered := false // the person has just answered the question
	lines := 0
	for line := range strings.Lines(section) {
		if command, isCommand := strings.CutPrefix(line, "$ airlock agents create "); isCommand {
			id, token = i.agent(strings.Fields(command)...)
		}
		row := cells(line)
		if len(row) != 4 || len(words(row[1])) == 0 {
			continue
		}
		if row[0] == "" {
			command := strings.NewReplacer("AGENT_ID", id, "APPROVAL_ID", approval).Replace(words(row[1])[0])
			cmd := exec.Command("script", "-qec", filepath.Join(testenv.RepoRoot(t), "bin", command), os.DevNull)
			cmd.Env = i.env
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v, %s", command, err, out)
			}
			answered = strings.Contains(command, approval) && approval != ""
			continue
		}
		lines++
		d := i.announce(url, id, token, words(row[1])[0], row[0])
		// The answer is kept a moment after the person has given it.
		for answered && d.Decision == "PENDING" && d.ApprovalID == approval {
			d = i.announce(url, id, token, words(row[1])[0], row[0])
		}
		answered = false
		if want := append(words(row[2]), "")[:2]; d.Decision != want[0] || d.Error.Code != want[1] {
			t.Errorf("%s\ngot %+v, want %q", line, d, want)
		}
		for _, policy := range words(row[3]) {
			if strings.HasPrefix(policy, "agents.") && !slices.Contains(d.Policies, policy) {
				t.Errorf("%s\ndecided by %q, want %s", line, d.Policies, policy)
			}
		}
		if d.ApprovalID != "" {
			approval = d.ApprovalID
		}
	}
	if lines < 10 {
		t.Errorf("%d lines of the walk were run", lines)
	}
	shown := i.airlock("agents", "show", id, "-n", "500")
	for _, word := range []string{"suspended", "BUDGET_EXCEEDED", "PENDING", "QWED-AGENT-LOOP-003",
		"3 of 5 USD today"} {
		if !strings.Contains(shown, word) {
			t.Errorf("no %q in %s", word, shown)
		}
	}
}
