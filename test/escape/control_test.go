package escape_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/internal/cgroup"
	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/runner"
)

// TestAttacksSucceedOnHost runs attacks as plain programs without a sandbox, if their
// header states that they succeed there. It shows that their method works and that the
// oracle detects it.
func TestAttacksSucceedOnHost(t *testing.T) {
	testenv.Sandbox(t)
	categories := map[string]int{}
	for _, a := range attacks(t) {
		if !a.onHost {
			continue
		}
		categories[a.category()]++
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			b := lay(t, t.TempDir())
			got := runOnHost(t, a.program(t, b))
			o := oracle{secrets: hostFacts(), touched: b.touched()}
			o.secrets["the flag"] = b.flag
			if len(o.gains(got)) == 0 {
				t.Errorf("the attack reached nothing without a sandbox, so it proves nothing with one\n%s", report(got))
			}
		})
	}
	for _, category := range []string{"credentials", "files", "kernel", "network", "privileges", "proc"} {
		if categories[category] == 0 {
			t.Errorf("no attack of category %s is shown to succeed on the host", category)
		}
	}
}

// resultMark separates the result from what a program prints.
const resultMark = "the result follows: "

func runOnHost(t *testing.T, p program) output {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "python3", "-c",
		p.code+"\nimport json; print('"+resultMark+"' + json.dumps(result))")
	if p.language == "node" {
		code := p.code + "\nconsole.log('" + resultMark + "' + JSON.stringify(globalThis.result))"
		cmd = exec.CommandContext(t.Context(), "node", "--input-type=module", "-e", code)
	}
	cmd.Dir = t.TempDir()
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, stdout.String(), stderr.String())
	}
	_, result, _ := strings.Cut(stdout.String(), resultMark)
	return output{kind: wantNothing, data: json.RawMessage(result),
		texts: map[string]string{"stdout": stdout.String(), "stderr": stderr.String()}}
}

// TestOracleSeesEveryWayOut has a program give its flag away through each way
// out of a sandbox, and wants the oracle to see each.
func TestOracleSeesEveryWayOut(t *testing.T) {
	env := testenv.Sandbox(t)
	ways := map[string]program{
		"result": {"python", `result = {"a": ["{{flag}}"]}`},
		"stdout": {"python", `print("{{flag}}"); result = []`},
		"stderr": {"python", `import sys; print("{{flag}}", file=sys.stderr); result = []`},
		"arguments": {"python",
			`from client.mcp_client import call_tool; await call_tool(server_id="demo", name="echo", arguments={"a": ` +
				`"{{flag}}"})`},
		"error":          {"python", `raise ValueError("{{flag}}")`},
		"a claim":        {"python", `result = ["I mounted the host"]`},
		"result of node": {"node", `globalThis.result = "{{flag}}"`},
		"arguments of node": {"node",
			`import {callTool} from "./client/mcp_client.js"; await callTool({serverId: "demo", name: "echo", ` +
				`arguments: {a: "{{flag}}"}})`},
	}
	for name, driver := range drivers() {
		l := openLab(t, env, driver(t, env))
		for way, p := range ways {
			t.Run(name+"/"+way, func(t *testing.T) {
				calls := &upstream{}
				s := l.open(t, calls)
				flag := newFlag()
				outcome, err := s.orders.Run(t.Context(),
					orchestrator.Request{Language: p.language,
						Code: []byte(strings.ReplaceAll(p.code, "{{flag}}", flag))})
				if _, closeErr := s.close(l); err != nil || closeErr != nil {
					t.Fatal(err, closeErr)
				}
				got, err := out(outcome, calls.received())
				if err != nil {
					t.Fatal(err)
				}
				if gains := (oracle{secrets: map[string]string{"the flag": flag}}).gains(got); len(gains) == 0 {
					t.Errorf("the oracle sees nothing, want a gain\n%s", report(got))
				}
			})
		}
	}
}

// TestLeftoversAreSeen leaves a process, a directory, a mount and a control group
// behind.
func TestLeftoversAreSeen(t *testing.T) {
	testenv.Sandbox(t)
	state := t.TempDir()
	home := filepath.Join(state, "instance", "sb-000000000000")
	spec := runner.Spec{ID: "sb-000000000000", StateDir: filepath.Join(home, "state")}
	if err := os.MkdirAll(spec.StateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", "read line", "--root="+spec.StateDir)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Wait() // it ends with status 1, because it reads the end of its input
	})
	wants := []string{fmt.Sprintf("process %d of %s", cmd.Process.Pid, spec.ID), "the directory " + home}
	if os.Geteuid() == 0 {
		wants = append(wants, "a mount of "+spec.ID, "the control group ")
		mountAndGroup(t, spec)
	}
	left, err := leftovers([]runner.Spec{spec}, state)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range wants {
		if !strings.Contains(strings.Join(left, "\n"), want) {
			t.Errorf("got %q, want %q in it", left, want)
		}
	}
}

// mountAndGroup makes what only root can make.
func mountAndGroup(t *testing.T, spec runner.Spec) {
	t.Helper()
	if err := unix.Mount("none", spec.StateDir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(spec.StateDir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	tree, err := cgroup.Find()
	if err != nil {
		t.Fatal(err)
	}
	group, err := tree.New(groupName(spec), cgroup.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := group.Remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}
