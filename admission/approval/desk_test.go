package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/golden"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

const childDir = "AIRLOCK_APPROVAL_TEST_DIR"

// TestMain lets the test binary act as another Airlock that asks and waits.
func TestMain(m *testing.M) {
	if act(os.Args) {
		os.Exit(0)
	}
	if dir := os.Getenv(childDir); dir != "" {
		desk, err := approval.OpenDesk(dir, nil)
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
		Asking: approval.Asking{Principal: "ann", SessionID: "ses_1", RunID: "run_1", CallID: "call_1"},
		Subject: approval.Subject{
			ServerID: "files", ToolName: "delete_file", DefinitionDigest: "sha256:d",
			Arguments: json.RawMessage(`{"path":"/srv/a"}`), CodeHash: canon.Digest([]byte(code)), Code: code,
			PolicyVersion: "sha256:p",
		},
		Grounds: approval.Grounds{Risk: "destructive", Rules: []string{"default.destructive (default.cedar:28)"},
			Approve: []string{"owner"}},
	}
}

func openDesk(t *testing.T, dir string, opts *approval.Options) *approval.Desk {
	t.Helper()
	d, err := approval.OpenDesk(dir, approval.Trusting(opts))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// ask asks a question and returns the channel of its verdict.
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

// posted waits until a question is visible to other processes.
func posted(t *testing.T, dir, id string) (q approval.Posted) {
	t.Helper()
	testenv.Await(t, "question "+id, func() bool {
		var err error
		if q, err = approval.Find(dir, id); err != nil && !errors.Is(err, approval.ErrClosed) {
			t.Fatal(err)
		}
		return err == nil
	})
	return q
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
			verdict := ask(t, openDesk(t, dir, nil), q)
			p := posted(t, dir, q.ID)
			if _, err := approval.Reply(dir, p, approval.Decision{Approve: test.approve}); err != nil {
				t.Fatal(err)
			}
			if v := <-verdict; v.Answer != test.want || !strings.HasSuffix(v.By, ", command line") {
				t.Errorf("got %+v, want %s by this user", v, test.want)
			}
			if open, err := approval.List(dir); err != nil || len(open) != 0 {
				t.Errorf("open afterwards: got %v, %v, want none", open, err)
			}
			if _, err := approval.Reply(dir, p, approval.Decision{Approve: true}); !errors.Is(err, approval.ErrClosed) {
				t.Errorf("a second answer: got %v, want ErrClosed", err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 ||
				!strings.HasSuffix(left[0], ".sock") {
				t.Errorf("files left: %q, want the desk's socket", left)
			}
		})
	}
}

// noted is a watcher that forwards its events.
type noted struct {
	opened chan approval.Posted
	closed chan string
}

func (n noted) Opened(q approval.Posted) error {
	n.opened <- q
	return nil
}

func (n noted) Closed(_ approval.Posted, outcome string) error {
	n.closed <- outcome
	return nil
}

// watch watches a directory until the test ends.
func watch(t *testing.T, dir string) noted {
	t.Helper()
	n := noted{make(chan approval.Posted, 100), make(chan string, 100)}
	ctx, stop := context.WithCancel(context.Background())
	watched := make(chan error, 1)
	go func() { watched <- approval.Watch(ctx, dir, nil, n) }()
	t.Cleanup(func() {
		stop()
		if err := <-watched; err != nil {
			t.Errorf("watch: got %v, want nil", err)
		}
	})
	return n
}

// Without a channel a question waits for the command line, and watchers are notified of it and of
// its end.
func TestWatchersHearOfQuestionsAndTheirEnds(t *testing.T) {
	dir := t.TempDir()
	one, two := watch(t, dir), watch(t, dir)
	d := openDesk(t, dir, nil)
	verdict := ask(t, d, question())
	p := <-one.opened
	<-two.opened
	if _, err := approval.Reply(dir, p, approval.Decision{Approve: true}); err != nil {
		t.Fatal(err)
	}
	if v := <-verdict; v.Answer != approval.Yes {
		t.Errorf("got %+v, want yes", v)
	}
	for _, heard := range []string{<-one.closed, <-two.closed} {
		if !strings.Contains(heard, "answered already: approved by ") || !strings.Contains(heard, ", command line") {
			t.Errorf("got %q, want who approved", heard)
		}
	}
}

// A subscriber gets an event when a question is asked and when it is closed, and can
// list the questions of a run.
func TestSubscribersHearOfQuestionsAndTheirEnds(t *testing.T) {
	dir := t.TempDir()
	d := openDesk(t, dir, nil)
	events := make(chan approval.Event, 10)
	unsubscribe := d.Subscribe(func(e approval.Event) { events <- e })
	q := question()
	verdict := ask(t, d, q)
	if e := <-events; !e.Open || e.HasChannel || e.Question.ID != q.ID {
		t.Errorf("got %+v, want the question, without a channel", e)
	}
	if got := d.Waiting("run_1"); len(got) != 1 || got[0].ID != q.ID || len(d.Waiting("run_2")) != 0 {
		t.Errorf("got %+v waiting, want the one question of its run", got)
	}
	if _, err := approval.Reply(dir, posted(t, dir, q.ID), approval.Decision{}); err != nil {
		t.Fatal(err)
	}
	<-verdict
	if e := <-events; e.Open || !strings.Contains(e.Outcome, "denied by ") {
		t.Errorf("got %+v, want the end", e)
	}
	unsubscribe()
	late := question()
	last := ask(t, d, late)
	if _, err := approval.Reply(dir, posted(t, dir, late.ID), approval.Decision{}); err != nil {
		t.Fatal(err)
	}
	<-last
	select {
	case e := <-events:
		t.Errorf("got %+v after the end of the subscription", e)
	default:
	}
}

func TestExpiry(t *testing.T) {
	q := question()
	q.Expires = time.Now().Add(20 * time.Millisecond)
	if v := <-ask(t, openDesk(t, t.TempDir(), nil), q); v.Answer != approval.Expired {
		t.Errorf("got %+v, want Expired", v)
	}
}

func TestCancelledQuestionsCloseThemselves(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	d, q := openDesk(t, dir, nil), question()
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
	if _, err := approval.Reply(dir, p, approval.Decision{Approve: true}); !errors.Is(err, approval.ErrClosed) {
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
	soon := func(session string) approval.Question {
		q := question()
		q.SessionID, q.Expires = session, time.Now().Add(10*time.Millisecond)
		return q
	}
	host.verdicts <- approval.Verdict{Answer: approval.Yes, By: "ann, host"}
	if v := <-ask(t, d, soon("ses_2")); v.Answer != approval.Expired {
		t.Errorf("a question of another session: got %+v, want it to expire", v)
	}
	later := asker{make(chan approval.Verdict, 1)}
	later.verdicts <- approval.Verdict{Answer: approval.No, By: "ann, a later channel"}
	d.Register("ses_1", later)
	unregister() // the channel is not registered any more
	if v := <-ask(t, d, question()); v.By != "ann, a later channel" {
		t.Errorf("after another channel took its place: got %+v, want that one's answer", v)
	}
}

func TestCommandLineAnswersWhenTheHostCannot(t *testing.T) {
	dir := t.TempDir()
	d, q := openDesk(t, dir, nil), question()
	host := asker{make(chan approval.Verdict)}
	close(host.verdicts)
	d.Register("ses_1", host)
	verdict := ask(t, d, q)
	if _, err := approval.Reply(dir, posted(t, dir, q.ID), approval.Decision{Approve: true}); err != nil {
		t.Fatal(err)
	}
	if v := <-verdict; v.Answer != approval.Yes {
		t.Errorf("got %+v, want yes", v)
	}
}

func TestAWithdrawalIsReported(t *testing.T) {
	dir, withdrawn := t.TempDir(), []string{}
	d := openDesk(t, dir, &approval.Options{OnWithdraw: func(_ context.Context, g approval.Grant, by string) {
		withdrawn = append(withdrawn, fmt.Sprintf("%s of %s by %s", g.ID, g.ToolName, by))
	}})
	q := question()
	verdict := ask(t, d, q)
	if _, err := approval.Reply(dir, posted(t, dir, q.ID),
		approval.Decision{Approve: true, For: approval.Extent{Reach: approval.ThisRun}}); err != nil {
		t.Fatal(err)
	}
	<-verdict
	grants, err := d.Grants(t.Context())
	if err != nil || len(grants) != 1 {
		t.Fatalf("got %v, %v, want one grant", grants, err)
	}
	id := grants[0].ID
	first, _ := d.Withdraw(t.Context(), id, "ann, console", func(approval.Grant) bool { return true })
	again, _ := d.Withdraw(t.Context(), id, "bob", func(approval.Grant) bool { return true })
	if left, err := d.Grants(t.Context()); !first || again || err != nil || len(left) > 0 {
		t.Errorf("the grant was not withdrawn once: %t, %t, %v, %v", first, again, left, err)
	}
	if want := []string{fmt.Sprintf("%s of %s by ann, console", id, q.ToolName)}; !slices.Equal(withdrawn, want) {
		t.Errorf("got %q, want %q", withdrawn, want)
	}
}

// Answers of other users do not count, also if they could reach the socket.
func TestAnotherUserDoesNotAnswer(t *testing.T) {
	dir := t.TempDir()
	d := openDesk(t, dir, nil)
	q := question()
	verdict := ask(t, d, q)
	p := posted(t, dir, q.ID)
	for _, user := range []int{os.Geteuid() + 1, os.Geteuid() + 65534, -1} {
		if taken, detail := d.ApproveAs(q.ID, p.Digest, user); taken || !strings.Contains(detail, "another user") {
			t.Errorf("the user %d: got %t, %q", user, taken, detail)
		}
	}
	if _, err := approval.Reply(dir, p, approval.Decision{Approve: true}); err != nil {
		t.Errorf("this user: %v", err)
	}
	if v := <-verdict; v.Answer != approval.Yes {
		t.Errorf("got %+v, want the answer of this user", v)
	}
}

func TestAGrantCoversFurtherCalls(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	d := openDesk(t, dir, &approval.Options{Now: func() time.Time { return now }})
	first := question()
	verdict := ask(t, d, first)
	if _, err := approval.Reply(dir, posted(t, dir, first.ID),
		approval.Decision{Approve: true, For: approval.Extent{Reach: approval.ThisRun}}); err != nil {
		t.Fatal(err)
	}
	if v := <-verdict; v.Answer != approval.Yes || v.For.Reach != approval.ThisRun {
		t.Fatalf("got %+v, want yes for the run", v)
	}
	tests := []struct {
		name   string
		change func(*approval.Question)
		want   approval.Answer
	}{
		{"the same tool with other arguments",
			func(q *approval.Question) { q.Arguments = json.RawMessage(`{"path":"/srv/b"}`) }, approval.Yes},
		{"another run", func(q *approval.Question) { q.RunID = "run_2" }, approval.Expired},
		{"another tool", func(q *approval.Question) { q.ToolName = "format_disk" }, approval.Expired},
		{"another server", func(q *approval.Question) { q.ServerID = "disk" }, approval.Expired},
		{"another definition of the tool", func(q *approval.Question) { q.DefinitionDigest = "sha256:e" },
			approval.Expired},
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
	if _, err := approval.Reply(dir, open[0], approval.Decision{Approve: true}); !errors.Is(err, approval.ErrClosed) {
		t.Errorf("answering the dead: got %v, want ErrClosed", err)
	}
	openDesk(t, dir, nil)
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("files left: %q, want one socket", left)
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
	q.Flags = []string{"description: the text gives instructions to the model",
		"inputSchema.properties.p\u202e.title: 2 characters cannot be seen"}
	q.Arguments = json.RawMessage(`{"path":"/srv/\u202egnp.exe","force":true,"id":9007199254740993,"note":"` +
		"a\u202eb" + `"}`)
	golden.Check(t, []byte(approval.Text(q)), filepath.Join("testdata", "question.txt"))
	q.Code += "# changed"
	if text := approval.Text(q); !strings.Contains(text, "not the code that runs") ||
		strings.Contains(text, "import servers") {
		t.Errorf("code with another digest is shown:\n%s", text)
	}
}

// Issue 27: a question's arguments had escapes in its file that the call does not have, so that a person at a
// terminal was shown another size and another digest than in the console.
func TestArgumentsOfAQuestionAreThoseOfTheCall(t *testing.T) {
	dir := t.TempDir()
	q := question()
	q.Arguments = json.RawMessage("{\"query\":\"a < b && c > d\u2028\"}")
	verdict := ask(t, openDesk(t, dir, nil), q)
	seen := posted(t, dir, q.ID)
	if string(seen.Arguments) != string(q.Arguments) {
		t.Errorf("got %s, want %s", seen.Arguments, q.Arguments)
	}
	if _, err := approval.Reply(dir, seen, approval.Decision{}); err != nil {
		t.Fatal(err)
	}
	<-verdict
}

// Whoever learns of a question from Ask can find it at once.
func TestAnOpenedQuestionIsFound(t *testing.T) {
	desk := openDesk(t, t.TempDir(), nil)
	asked, found := question(), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := desk.Ask(approval.WithOpened(ctx, func() {
		_, _, err := desk.Find(asked.ID)
		found <- err
		cancel()
	}), asked)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
	select {
	case err := <-found:
		if err != nil {
			t.Errorf("finding the question: %v", err)
		}
	default:
		t.Error("nobody learns of the question")
	}
}
