package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/broker/approval"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/golden"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

const childDir = "AIRLOCK_APPROVAL_TEST_DIR"

// TestMain makes the test binary act as another Airlock that asks and waits.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		desk, err := approval.OpenDesk(dir, &approval.Options{Wait: true})
		if err != nil {
			os.Exit(1)
		}
		desk.Ask(context.Background(), question())
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const code = "import servers.files as files\nx = 1\nawait files.delete_file({'path': '/srv/a'})\n"

func question() approval.Question {
	now := time.Now()
	return approval.Question{
		ID: telemetry.NewID("apr"), Asked: now, Expires: now.Add(time.Minute),
		Principal: "ann", SessionID: "ses_1", RunID: "run_1", CallID: "call_1",
		ServerID: "files", ToolName: "delete_file", DefinitionDigest: "sha256:d",
		Arguments: json.RawMessage(`{"path":"/srv/a"}`), CodeHash: canon.Digest([]byte(code)), Code: code, PolicyVersion: "sha256:p",
		Risk: "destructive", Rules: []string{"default.destructive (default.cedar:28)"}, Approve: []string{"owner"},
	}
}

func openDesk(t *testing.T, dir string, opts *approval.Options) *approval.Desk {
	t.Helper()
	d, err := approval.OpenDesk(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// ask puts a question and returns what will become of it.
func ask(t *testing.T, d *approval.Desk, q approval.Question) <-chan approval.Verdict {
	t.Helper()
	verdict := make(chan approval.Verdict, 1)
	go func() {
		v, err := d.Ask(context.Background(), q)
		if err != nil {
			t.Errorf("asking: %v", err)
		}
		verdict <- v
	}()
	return verdict
}

// posted waits until a question can be seen from outside.
func posted(t *testing.T, dir, id string) approval.Posted {
	t.Helper()
	for {
		q, err := approval.Find(dir, id)
		if err == nil {
			return q
		}
		if !errors.Is(err, approval.ErrClosed) || t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

func TestAnswersFromAnotherProcess(t *testing.T) {
	tests := []struct {
		name    string
		approve bool
		want    approval.Answer
	}{{"yes", true, approval.Yes}, {"no", false, approval.No}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			q := question()
			verdict := ask(t, openDesk(t, dir, &approval.Options{Wait: true}), q)
			p := posted(t, dir, q.ID)
			if err := approval.Reply(dir, p, test.approve, "ann, command line", false); err != nil {
				t.Fatal(err)
			}
			if v := <-verdict; v.Answer != test.want || v.By != "ann, command line" {
				t.Errorf("got %+v, want %s by ann", v, test.want)
			}
			if open, err := approval.List(dir); err != nil || len(open) != 0 {
				t.Errorf("open afterwards: got %v, %v, want none", open, err)
			}
			if err := approval.Reply(dir, p, true, "ann", false); !errors.Is(err, approval.ErrClosed) {
				t.Errorf("a second answer: got %v, want ErrClosed", err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 0 {
				t.Errorf("files left: %q", left)
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	v, err := openDesk(t, t.TempDir(), nil).Ask(t.Context(), question())
	if err != nil || v.Answer != approval.Nobody {
		t.Errorf("got %+v, %v, want Nobody at once", v, err)
	}
}

func TestWatcherIsSomebody(t *testing.T) {
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	seen, watched := make(chan approval.Posted, 1), make(chan error, 1)
	go func() {
		watched <- approval.Watch(ctx, dir, func(p approval.Posted) error { seen <- p; return nil })
	}()
	for {
		if marks, _ := filepath.Glob(filepath.Join(dir, "watcher-*")); len(marks) > 0 {
			break
		}
	}
	d := openDesk(t, dir, nil)
	verdict := ask(t, d, question())
	if err := approval.Reply(dir, <-seen, true, "ann", false); err != nil {
		t.Fatal(err)
	}
	if v := <-verdict; v.Answer != approval.Yes {
		t.Errorf("got %+v, want yes", v)
	}
	stop()
	if err := <-watched; err != nil {
		t.Errorf("watch: got %v, want nil", err)
	}
	if v, _ := d.Ask(t.Context(), question()); v.Answer != approval.Nobody {
		t.Errorf("after the watcher has gone: got %+v, want Nobody", v)
	}
}

func TestExpiry(t *testing.T) {
	q := question()
	q.Expires = time.Now().Add(20 * time.Millisecond)
	if v := <-ask(t, openDesk(t, t.TempDir(), &approval.Options{Wait: true}), q); v.Answer != approval.Expired {
		t.Errorf("got %+v, want Expired", v)
	}
}

func TestCancelledQuestionsCloseThemselves(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	d, q := openDesk(t, dir, &approval.Options{Wait: true}), question()
	done := make(chan error, 1)
	go func() {
		_, err := d.Ask(ctx, q)
		done <- err
	}()
	p := posted(t, dir, q.ID)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
	if err := approval.Reply(dir, p, true, "ann", false); !errors.Is(err, approval.ErrClosed) {
		t.Errorf("answering it: got %v, want ErrClosed", err)
	}
}

// asker is a host that asks its person; the person's answer comes on a channel.
type asker struct{ verdicts chan approval.Verdict }

func (a asker) Ask(ctx context.Context, _ approval.Question) (approval.Verdict, error) {
	select {
	case v, ok := <-a.verdicts:
		if !ok {
			return approval.Verdict{}, errors.New("the host cannot ask")
		}
		return v, nil
	case <-ctx.Done():
		return approval.Verdict{}, ctx.Err()
	}
}

func TestHostAsks(t *testing.T) {
	d := openDesk(t, t.TempDir(), nil)
	host := asker{make(chan approval.Verdict, 1)}
	unregister := d.Register("ses_1", host)
	host.verdicts <- approval.Verdict{Answer: approval.Yes, By: "ann, host"}
	if v := <-ask(t, d, question()); v.Answer != approval.Yes || v.By != "ann, host" {
		t.Errorf("got %+v, want yes through the host", v)
	}
	other := question()
	other.SessionID = "ses_2"
	if v := <-ask(t, d, other); v.Answer != approval.Nobody {
		t.Errorf("a question of another session: got %+v, want Nobody", v)
	}
	unregister()
	if v := <-ask(t, d, question()); v.Answer != approval.Nobody {
		t.Errorf("after the host has gone: got %+v, want Nobody", v)
	}
}

func TestCommandLineAnswersWhenTheHostCannot(t *testing.T) {
	dir := t.TempDir()
	d, q := openDesk(t, dir, nil), question()
	host := asker{make(chan approval.Verdict)}
	close(host.verdicts)
	d.Register("ses_1", host)
	verdict := ask(t, d, q)
	if err := approval.Reply(dir, posted(t, dir, q.ID), true, "ann", false); err != nil {
		t.Fatal(err)
	}
	if v := <-verdict; v.Answer != approval.Yes {
		t.Errorf("got %+v, want yes", v)
	}
}

// Each attack tries to get a yes that no person gave to this very question.
func TestAttacks(t *testing.T) {
	valid := func(digest string) string {
		return `{"answer":"approve","question":"` + digest + `","by":"mallory"}`
	}
	tests := []struct {
		name   string
		attack func(t *testing.T, dir string, p approval.Posted)
	}{
		{"an answer to another question", func(t *testing.T, dir string, p approval.Posted) {
			write(t, filepath.Join(dir, p.ID+".answer.json"), valid("sha256:other"), 0o600)
		}},
		{"the question is changed after it was shown", func(t *testing.T, dir string, p approval.Posted) {
			path := filepath.Join(dir, p.ID+".question.json")
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			forged := strings.Replace(string(data), "/srv/a", "/srv/b", 1)
			if forged == string(data) {
				t.Fatal("the attack changed nothing")
			}
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
			if err != nil {
				t.Fatal(err)
			}
			f.WriteString(forged)
			f.Close()
			changed, err := approval.Find(dir, p.ID)
			if err != nil {
				t.Fatal(err)
			}
			if err := approval.Reply(dir, changed, true, "ann", false); err != nil {
				t.Fatal(err)
			}
		}},
		{"an answer that others can write", func(t *testing.T, dir string, p approval.Posted) {
			write(t, filepath.Join(dir, p.ID+".answer.json"), valid(p.Digest), 0o666)
		}},
		{"an answer through a link", func(t *testing.T, dir string, p approval.Posted) {
			elsewhere := filepath.Join(t.TempDir(), "answer.json")
			write(t, elsewhere, valid(p.Digest), 0o600)
			if err := os.Symlink(elsewhere, filepath.Join(dir, p.ID+".answer.json")); err != nil {
				t.Fatal(err)
			}
		}},
		{"an answer with more than an answer has", func(t *testing.T, dir string, p approval.Posted) {
			write(t, filepath.Join(dir, p.ID+".answer.json"), `{"answer":"approve","question":"`+p.Digest+`","by":"m","for_session":true}`, 0o600)
		}},
		{"a word that is no answer", func(t *testing.T, dir string, p approval.Posted) {
			write(t, filepath.Join(dir, p.ID+".answer.json"), `{"answer":"ok","question":"`+p.Digest+`","by":"m"}`, 0o600)
		}},
		{"two answers in one", func(t *testing.T, dir string, p approval.Posted) {
			write(t, filepath.Join(dir, p.ID+".answer.json"), valid(p.Digest)+valid(p.Digest), 0o600)
		}},
		{"half an answer", func(t *testing.T, dir string, p approval.Posted) {
			write(t, filepath.Join(dir, p.ID+".answer.json"), `{"answer":"approve"`, 0o600)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			d, q := openDesk(t, dir, &approval.Options{Wait: true}), question()
			verdict := ask(t, d, q)
			test.attack(t, dir, posted(t, dir, q.ID))
			path := filepath.Join(dir, q.ID+".answer.json")
			for {
				if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
					break // it was thrown away, or taken
				}
			}
			select {
			case v := <-verdict:
				t.Errorf("got %+v: the attack was taken for an answer", v)
			default:
			}
			if p, err := approval.Find(dir, q.ID); err == nil {
				if err := approval.Reply(dir, p, false, "ann", false); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestGrants(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	d := openDesk(t, dir, &approval.Options{Wait: true, Now: func() time.Time { return now }})
	first := question()
	verdict := ask(t, d, first)
	if err := approval.Reply(dir, posted(t, dir, first.ID), true, "ann", true); err != nil {
		t.Fatal(err)
	}
	if v := <-verdict; v.Answer != approval.Yes || !v.ForRun {
		t.Fatalf("got %+v, want yes for the run", v)
	}
	tests := []struct {
		name   string
		change func(*approval.Question)
		want   approval.Answer
	}{
		{"the same tool with other arguments", func(q *approval.Question) { q.Arguments = json.RawMessage(`{"path":"/srv/b"}`) }, approval.Yes},
		{"another run", func(q *approval.Question) { q.RunID = "run_2" }, approval.Expired},
		{"another tool", func(q *approval.Question) { q.ToolName = "format_disk" }, approval.Expired},
		{"another server", func(q *approval.Question) { q.ServerID = "disk" }, approval.Expired},
		{"another definition of the tool", func(q *approval.Question) { q.DefinitionDigest = "sha256:e" }, approval.Expired},
		{"another policy", func(q *approval.Question) { q.PolicyVersion = "sha256:q" }, approval.Expired},
		{"another principal", func(q *approval.Question) { q.Principal = "bob" }, approval.Expired},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			q := question()
			test.change(&q)
			q.Expires = time.Now().Add(10 * time.Millisecond)
			if v := <-ask(t, d, q); v.Answer != test.want {
				t.Errorf("got %+v, want %s", v, test.want)
			}
		})
	}
	now = now.Add(2 * time.Hour)
	q := question()
	q.Expires = time.Now().Add(10 * time.Millisecond)
	if v := <-ask(t, d, q); v.Answer != approval.Expired {
		t.Errorf("two hours later: got %+v, want the grant to be over", v)
	}
}

func TestQuestionsOfTheDeadAreClosed(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var open []approval.Posted
	for len(open) == 0 {
		var err error
		if open, err = approval.List(dir); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	if err := approval.Reply(dir, open[0], true, "ann", false); !errors.Is(err, approval.ErrClosed) {
		t.Errorf("answering the dead: got %v, want ErrClosed", err)
	}
	openDesk(t, dir, nil)
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 0 {
		t.Errorf("files left: %q", left)
	}
}

func TestRefusesADirectoryThatOthersCanWrite(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := approval.OpenDesk(dir, nil); err == nil || !strings.Contains(err.Error(), "others can write") {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestNamesNeverLeaveTheDirectory(t *testing.T) {
	for _, id := range []string{"../../etc/passwd", "", "apr_", "apr_../x", "apr_" + strings.Repeat("A", 32)} {
		if _, err := approval.Find(t.TempDir(), id); !errors.Is(err, approval.ErrClosed) {
			t.Errorf("%q: got %v, want ErrClosed", id, err)
		}
	}
}

func TestWhatIsShown(t *testing.T) {
	q := question()
	q.ID = "apr_0"
	q.Expires = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	q.ToolName = "delete\u200b_file\x1b[2J"
	q.Flags = []string{"description: the text gives instructions to the model", "inputSchema.properties.p\u202e.title: 2 characters cannot be seen"}
	q.Arguments = json.RawMessage(`{"path":"/srv/\u202egnp.exe","force":true,"id":9007199254740993,"note":"` + "a\u202eb" + `"}`)
	golden.Check(t, []byte(approval.Text(q)), filepath.Join("testdata", "question.txt"))
	q.Code += "# changed"
	if text := approval.Text(q); !strings.Contains(text, "not the code that runs") || strings.Contains(text, "import servers") {
		t.Errorf("code with another digest is shown:\n%s", text)
	}
}
