package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/cli/approvals"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

const asProgram = "AIRLOCK_CLI_TEST_PROGRAM"

// TestMain makes the test binary the airlock program: a desk accepts answers only from
// processes of the program that asked.
func TestMain(m *testing.M) {
	switch os.Getenv(asProgram) {
	case "":
		os.Exit(m.Run())
	case "run": // what `airlock run` does about a question
		os.Exit(askLikeRun(os.Args[1]))
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	os.Exit(Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// askLikeRun asks one question as a run does, and prints the verdict.
func askLikeRun(dir string) int {
	desk, err := approval.OpenDesk(dir, nil)
	if err != nil {
		return 1
	}
	defer desk.Close()
	defer approvals.AskHere(desk, "ses_1", os.Stderr, nil)()
	v, err := desk.Ask(context.Background(), waitingCall(time.Minute))
	if err != nil {
		return 1
	}
	os.Stdout.WriteString("verdict: " + v.String() + "\n")
	return 0
}

func waitingCall(wait time.Duration) approval.Question {
	return approval.Question{
		ID: telemetry.NewID("apr"), Asked: time.Now(), Expires: time.Now().Add(wait),
		Asking: approval.Asking{Principal: "ann", SessionID: "ses_1", RunID: "run_1", CallID: "call_1"},
		Subject: approval.Subject{ServerID: "files", ToolName: "delete_file",
			Arguments: json.RawMessage(`{"path":"/srv/a"}`)},
		Grounds: approval.Grounds{Risk: "destructive", Rules: []string{"default.destructive (default.cedar:28)"}},
	}
}

// office is a state directory with a desk that asks.
type office struct {
	home, dir, self string
	desk            *approval.Desk
}

func newOffice(t *testing.T) *office {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	o := &office{home: home, dir: store.Approvals(home), self: self}
	if o.desk, err = approval.OpenDesk(o.dir, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.desk.Close() })
	return o
}

// ask posts a question.
func (o *office) ask(t *testing.T, q approval.Question) <-chan approval.Verdict {
	t.Helper()
	verdict := make(chan approval.Verdict, 1)
	go func() {
		v, err := o.desk.Ask(context.Background(), q)
		if err != nil {
			t.Errorf("asking: %v", err)
		}
		verdict <- v
	}()
	for { // until the question is visible to other processes
		if _, err := approval.Find(o.dir, q.ID); err == nil {
			return verdict
		}
	}
}

func (o *office) command(args ...string) *exec.Cmd {
	cmd := exec.Command(o.self, args...)
	cmd.Env = append(os.Environ(), asProgram+"=main", "AIRLOCK_HOME="+o.home)
	return cmd
}

// screen is a terminal that a test writes to and reads from.
type screen struct {
	t    *testing.T
	file *os.File

	mu    sync.Mutex // guards shown
	shown bytes.Buffer
	more  chan struct{}
}

func newScreen(t *testing.T, cmd *exec.Cmd) *screen {
	t.Helper()
	s := &screen{t: t, file: testenv.Terminal(t, cmd), more: make(chan struct{}, 1)}
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := s.file.Read(buffer)
			s.mu.Lock()
			s.shown.Write(buffer[:n])
			s.mu.Unlock()
			select {
			case s.more <- struct{}{}:
			default:
			}
			if err != nil {
				close(s.more)
				return
			}
		}
	}()
	return s
}

// awaits waits until a text is shown, and returns everything up to it.
func (s *screen) awaits(text string) string {
	s.t.Helper()
	for ended := false; ; {
		s.mu.Lock()
		before, after, found := strings.Cut(s.shown.String(), text)
		if found {
			s.shown.Reset()
			s.shown.WriteString(after)
		}
		shown := s.shown.String()
		s.mu.Unlock()
		if found {
			return before
		}
		if ended {
			s.t.Fatalf("got %q, want %q", shown, text)
		}
		_, open := <-s.more
		ended = !open
	}
}

func (s *screen) types(keys string) {
	s.t.Helper()
	if _, err := io.WriteString(s.file, keys); err != nil {
		s.t.Fatal(err)
	}
}

const watchPrompt = "s decide later: "

func TestWatchTakesKeys(t *testing.T) {
	tests := []struct {
		name, keys string
		want       approval.Answer
		forRun     bool
		says       string
	}{
		{"yes", "y", approval.Yes, false, "approved apr_"},
		{"yes and return", "y\r", approval.Yes, false, "approved apr_"},
		{"a capital letter", "Y", approval.Yes, false, "approved apr_"},
		{"no", "n", approval.No, false, "denied apr_"},
		{"no and return", "n\n", approval.No, false, "denied apr_"},
		{"for the run", "r", approval.Yes, true, "approved apr_"},
		{"keys that mean nothing", "\r\nxq \x1b[A y", approval.Yes, false, "approved apr_"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := newOffice(t)
			at := newScreen(t, o.command("approvals", "watch"))
			at.awaits("waiting for calls that need you")
			verdict := o.ask(t, waitingCall(time.Minute))
			if shown := at.awaits(watchPrompt); !strings.Contains(shown, `"path": "/srv/a"`) ||
				!strings.Contains(shown, "delete_file") {
				t.Errorf("got %q, want the whole call", shown)
			}
			at.types(test.keys)
			if v := <-verdict; v.Answer != test.want || (v.For.Reach == approval.ThisRun) != test.forRun ||
				!strings.Contains(v.By, "command line") {
				t.Errorf("got %+v", v)
			}
			at.awaits(test.says)
		})
	}
}

// Any process of the user can write a query to a terminal, and the terminal's reply may contain
// a y. Replies must not be taken for keys.
func TestWhatATerminalSendsByItselfIsNoKey(t *testing.T) {
	answers := map[string]string{
		"mode report": "\x1b[?1;2$y", "ANSI mode report": "\x1b[4;1$y", "title": "\x1b]ly y y\x1b\\",
		"title with a bell": "\x1b]2;yes y\x07", "status string": "\x1bP1$ry y\x1b\\",
		"meta y": "\x1by", "application key": "\x1bOy", "colour": "\x1b]11;rgb:yyyy/yyyy\x1b\\",
		"eight bits": "\x9b?1;2$y", "eight-bit string": "\x90y y\x1b\\",
		"private string": "\x1b_yy\x1b\\", "escape within a string": "\x1b]2;\x1byy\x07", "character set": "\x1b(y",
		"device attributes": "\x1b[?62;4;22c", "cursor": "\x1b[24;80R",
	}
	for name, sent := range answers {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			at := newScreen(t, o.command("approvals", "watch"))
			at.awaits("waiting for calls that need you")
			verdict := o.ask(t, waitingCall(time.Minute))
			at.awaits(watchPrompt)
			at.types(sent + sent)
			at.types("n")
			if v := <-verdict; v.Answer != approval.No {
				t.Errorf("got %+v, want the answer of the key", v)
			}
		})
	}
}

// Keys that were typed before a question was shown do not answer it.
func TestKeysTypedAheadAnswerNothing(t *testing.T) {
	o := newOffice(t)
	at := newScreen(t, o.command("approvals", "watch"))
	at.awaits("waiting for calls that need you")
	at.types("yyyy\nyyyy\n")
	at.awaits("yyyy\r\nyyyy") // the terminal has shown them
	first := o.ask(t, waitingCall(time.Minute))
	at.awaits(watchPrompt)
	at.types("n")
	if v := <-first; v.Answer != approval.No {
		t.Errorf("got %+v, want the answer to what was shown", v)
	}
}

// Questions are shown one after the other. If another process answers the one on the screen,
// watch prints the outcome and continues with the next.
func TestWatchFollowsWhatOthersDecide(t *testing.T) {
	o := newOffice(t)
	at := newScreen(t, o.command("approvals", "watch"))
	at.awaits("waiting for calls that need you")
	first, second := waitingCall(time.Minute), waitingCall(time.Minute)
	one := o.ask(t, first)
	at.awaits(watchPrompt)
	two := o.ask(t, second)
	if out, err := o.command("approvals", "deny", first.ID).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	<-one
	at.awaits(first.ID + ": the question was answered already: denied by ")
	at.awaits(watchPrompt)
	at.types("s")
	at.awaits("stays open")
	if out, err := o.command("approvals", "deny", second.ID).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	<-two
	third := o.ask(t, waitingCall(time.Minute))
	at.awaits(watchPrompt)
	at.types("y")
	if v := <-third; v.Answer != approval.Yes {
		t.Errorf("got %+v", v)
	}
}

func TestApproveShowsAndAsks(t *testing.T) {
	tests := []struct {
		name, keys string
		args       []string
		want       approval.Answer // if the question is answered
		open       bool
		says       string
	}{
		{"yes", "y", nil, approval.Yes, false, "approved apr_"},
		{"no", "n", nil, approval.No, true, "nothing was decided"},
		{"without asking", "", []string{"--yes"}, approval.Yes, false, "approved apr_"},
		{"as JSON", "y", []string{"--json"}, approval.Yes, false,
			`"decision":"approved","for":"call","for_run":false,"id":"apr_`},
		{"for the run", "y", []string{"--for-run"}, approval.Yes, false, "approved apr_"},
		{"for the run, in another way", "y", []string{"--for", "run"}, approval.Yes, false, "approved apr_"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := newOffice(t)
			q := waitingCall(time.Minute)
			verdict := o.ask(t, q)
			at := newScreen(t, o.command(append([]string{"approvals", "approve", q.ID}, test.args...)...))
			at.awaits(`"path": "/srv/a"`)
			if test.keys != "" {
				at.awaits("[y/n] ")
				at.types(test.keys)
			}
			at.awaits(test.says)
			if test.open {
				if _, err := approval.Find(o.dir, q.ID); err != nil {
					t.Errorf("the question is not open any more: %v", err)
				}
				o.command("approvals", "deny", q.ID).Run()
			}
			if v := <-verdict; v.Answer != test.want {
				t.Errorf("got %+v", v)
			}
		})
	}
}

// Without a terminal no call can be approved, even if stdin has an answer, but calls can be denied.
func TestApprovingNeedsATerminal(t *testing.T) {
	for _, args := range [][]string{{}, {"--yes"}, {"-y", "--for-run"}} {
		o := newOffice(t)
		q := waitingCall(time.Minute)
		verdict := o.ask(t, q)
		cmd := exec.Command("setsid", append([]string{"-w", o.self, "approvals", "approve", q.ID}, args...)...)
		cmd.Env = o.command().Env
		cmd.Stdin = strings.NewReader(strings.Repeat("y\n", 100))
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != verb.ExitRefused || !strings.Contains(string(out), "terminal") ||
			!strings.Contains(string(out), "hint: ") {
			t.Errorf("%q: got %v, %s", args, err, out)
		}
		deny := o.command("approvals", "deny", q.ID)
		if out, err := deny.CombinedOutput(); err != nil {
			t.Errorf("denying: %v, %s", err, out)
		}
		if v := <-verdict; v.Answer != approval.No {
			t.Errorf("%q: got %+v", args, v)
		}
		out, _ = o.command("approvals", "deny", q.ID).CombinedOutput()
		if !strings.Contains(string(out), "not open") {
			t.Errorf("a second answer: got %s", out)
		}
	}
}

// `airlock run` asks at its terminal. Without a terminal it prints how to answer.
func TestRunAsksAtItsTerminal(t *testing.T) {
	for keys, want := range map[string]string{"y": "verdict: approved by ann, terminal of the run",
		"n": "verdict: denied by ann", "r": "verdict: approved for the run by ann"} {
		t.Run(keys, func(t *testing.T) {
			cmd := exec.Command(mustExecutable(t), filepath.Join(t.TempDir(), "approvals"))
			cmd.Env = append(os.Environ(), asProgram+"=run")
			at := newScreen(t, cmd)
			at.awaits("May this call happen?")
			at.awaits(watchPrompt)
			at.types(keys)
			at.awaits(want)
		})
	}
	t.Run("without a terminal", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "approvals")
		cmd := exec.Command("setsid", "-w", mustExecutable(t), dir)
		cmd.Env = append(os.Environ(), asProgram+"=run")
		said, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		buffer := make([]byte, 4096)
		n, _ := said.Read(buffer)
		if text := string(buffer[:n]); !strings.Contains(text, "waits for your decision") ||
			!strings.Contains(text, "airlock approvals watch") {
			t.Errorf("got %q, want what waits and how to answer", text)
		}
		open, err := approval.List(dir)
		if err != nil || len(open) != 1 {
			t.Fatalf("got %v, %v, want the question", open, err)
		}
		if _, err := approval.Reply(dir, open[0], approval.Decision{}); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
}

func mustExecutable(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}
