package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// configured writes a configuration and returns its path.
func configured(t *testing.T, config string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "airlock.yaml")
	if err := os.WriteFile(file, []byte(testenv.WithoutPool(config)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// host starts the real program as an agent host does, with a new state directory, and
// returns a session with it.
func host(t *testing.T, config string) *mcp.ClientSession {
	t.Helper()
	testenv.OwnHome(t, "node", "python")
	return connected(t, configured(t, config))
}

// connected is host with a configuration file, in the state directory of AIRLOCK_HOME.
func connected(t *testing.T, file string) *mcp.ClientSession {
	t.Helper()
	cmd := exec.Command(filepath.Join(testenv.RepoRoot(t), "bin", "airlock"), "mcp", "--config", file)
	cmd.Stderr = t.Output()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	})
	return session
}

// answer is the answer to one program: its result, or an error.
type answer struct {
	data    json.Number
	refusal string // the error's type, if it is retryable
}

func submit(ctx context.Context, session *mcp.ClientSession, language, code string) (answer, error) {
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "run_code",
		Arguments: map[string]any{"language": language, "code": code}})
	if err != nil {
		return answer{}, err
	}
	text, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return answer{}, err
	}
	var run struct {
		Data  json.Number
		Error struct {
			Type      string
			Retryable bool
		}
	}
	if err := json.Unmarshal(text, &run); err != nil {
		return answer{}, fmt.Errorf("%w in %s", err, text)
	}
	if run.Error.Retryable {
		return answer{refusal: run.Error.Type}, nil
	}
	return answer{data: run.Data}, nil
}

// together submits all programs at once and returns their answers in order.
func together(t *testing.T, session *mcp.ClientSession, programs []job) []answer {
	t.Helper()
	answers := make([]answer, len(programs))
	var all sync.WaitGroup
	for i, p := range programs {
		all.Go(func() {
			var err error
			if answers[i], err = submit(t.Context(), session, p.language, p.code); err != nil {
				t.Errorf("program %d: %v", i, err)
			}
		})
	}
	all.Wait()
	return answers
}

// job is one program.
type job struct{ language, code string }

// Two hundred runs wait for four places, and each gets its own answer.
func TestTwoHundredRunsTogether(t *testing.T) {
	session := host(t, "sandbox: {pool: 4, maxSandboxes: 4, queue: 200}\n")
	programs := make([]job, 200)
	for i := range programs {
		programs[i] = job{"python", fmt.Sprintf("result = %d ** 2", i)}
		if i%2 == 1 {
			programs[i] = job{"node", fmt.Sprintf("globalThis.result = %d ** 2", i)}
		}
	}
	for i, got := range together(t, session, programs) {
		if want := (answer{data: json.Number(fmt.Sprint(i * i))}); got != want {
			t.Errorf("%s: got %+v, want %+v", programs[i].code, got, want)
		}
	}
}

// Two runs execute, five wait, and the others are refused at once.
func TestFullQueueRefuses(t *testing.T) {
	const places = 2 + 5
	session := host(t, "sandbox: {pool: 2, maxSandboxes: 2, queue: 5}\n")
	programs := make([]job, 40)
	for i := range programs {
		programs[i] = job{"python", fmt.Sprintf("import time\ntime.sleep(1)\nresult = %d", i)}
	}
	done, refused := 0, 0
	for i, got := range together(t, session, programs) {
		switch {
		case got == answer{data: json.Number(fmt.Sprint(i))}:
			done++
		case got.refusal == "RateLimit":
			refused++
		default:
			t.Errorf("program %d: got %+v, want its number, or a RateLimit that may be tried again", i, got)
		}
	}
	if done < places || refused == 0 {
		t.Errorf("got %d runs done and %d refused, want at least %d and 1", done, refused, places)
	}
	if got, err := submit(t.Context(), session, "python", "result = 1"); err != nil || got.data != "1" {
		t.Errorf("a run afterwards: got %+v, %v, want 1", got, err)
	}
}
