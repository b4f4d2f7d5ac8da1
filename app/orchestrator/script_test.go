package orchestrator

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission"
)

const stream = 1 << 20

func (l *lab) script(t *testing.T, timeout time.Duration) *Outcome {
	t.Helper()
	req := ScriptRequest("play", Script{Timeout: timeout, Stream: stream})
	req.Caller.Session = "ses_1"
	outcome, err := l.Run(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

// The host determines how a script ended: its exit status, or why it was stopped.
// T37: output of exactly the limit's length is complete.
func TestHowAScriptEnds(t *testing.T) {
	const delivered = `{"ok":true,"has_result":false}`
	hang := func(ctx context.Context, _ *conn) error { <-ctx.Done(); return ctx.Err() }
	prints := func(n int, then string) guest {
		return func(_ context.Context, c *conn) error {
			_, err := io.WriteString(c.stdout, strings.Repeat("x", n))
			return errors.Join(err, c.ask(methodFinish, then, &struct{}{}))
		}
	}
	for _, test := range []struct {
		name    string
		play    guest
		timeout time.Duration
		want    End
		stdout  int
		cut     bool
	}{
		{"well", prints(3, delivered), time.Minute, End{}, 3, false},
		{"with exit status 3", prints(0, `{"ok":false,"error":{"type":"NonZeroExit","message":"m"},"exit_code":3}`),
			time.Minute, End{ExitCode: 3}, 0, false},
		{"by an exception", prints(5, `{"ok":false,"error":{"type":"Timeout","message":"m"}}`), time.Minute,
			End{ExitCode: 1}, 5, false},
		{"without a word", func(context.Context, *conn) error { return errors.New("gone") }, time.Minute,
			End{ExitCode: 3}, 0, false},
		{"too late", hang, time.Millisecond, End{-9, StoppedAtTimeout}, 0, false},
		{"having printed all that it may", prints(stream, delivered), time.Minute, End{}, stream, false},
		{"having printed one byte more", prints(stream+1, delivered), time.Minute, End{-9, StoppedAtOutput}, stream,
			true},
		{"in a flood", func(ctx context.Context, c *conn) error {
			for ctx.Err() == nil {
				if _, err := io.WriteString(c.stdout, strings.Repeat("y", 1<<16)); err != nil {
					return err
				}
			}
			return nil
		}, time.Minute, End{-9, StoppedAtOutput}, stream, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, nil, admission.Limits{}, Options{}, test.play)
			outcome := l.script(t, test.timeout)
			if outcome.End != test.want {
				t.Errorf("got %+v, want %+v (%+v)", outcome.End, test.want, outcome.Envelope.Result.Error)
			}
			if len(outcome.Stdout) != test.stdout || (outcome.StdoutCut > 0) != test.cut {
				t.Errorf("got %d bytes of stdout, %d cut, want %d and cut: %v", len(outcome.Stdout), outcome.StdoutCut,
					test.stdout, test.cut)
			}
			if outcome.Envelope.SandboxImage != "verify@sha256:2" {
				t.Errorf("got the image %s, want that of scripts", outcome.Envelope.SandboxImage)
			}
		})
	}
}

// A script has no tools, even if its caller has, and its output is not a result.
func TestAScriptHasNoTools(t *testing.T) {
	l := newLab(t, nil, admission.Limits{}, Options{}, func(_ context.Context, c *conn) error {
		answer, err := c.call("echo", `{}`)
		if err == nil && answer.Error == nil {
			err = errors.New("the call succeeded")
		}
		_, printed := io.WriteString(c.stdout, "{\"a\": 1}\n")
		return errors.Join(err, printed, c.ask(methodFinish, `{"ok":true,"has_result":false}`, &struct{}{}))
	})
	outcome := l.script(t, time.Minute)
	if got := string(outcome.Envelope.Result.Data); got != "null" || outcome.End.ExitCode != 0 {
		t.Errorf("got the data %s and %+v, want null and success (%s)", got, outcome.End, outcome.Stderr)
	}
	for _, r := range l.records(t) {
		if r.RunID != "" && r.Language != "" && r.Language != LanguageScript {
			t.Errorf("got a record of the language %q, want %q", r.Language, LanguageScript)
		}
	}
}

func TestRequestsThatAreNoScripts(t *testing.T) {
	l := newLab(t, nil, admission.Limits{}, Options{}, nil)
	script := &Script{Timeout: time.Minute, Stream: stream}
	for name, req := range map[string]Request{
		"the language alone":       {Language: LanguageScript, Code: []byte("1")},
		"a script in another name": {Language: "python", Code: []byte("1"), Script: script},
		"no code":                  {Language: LanguageScript, Code: []byte(" "), Script: script},
	} {
		if err := l.Check(req); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	l.parts.Script = nil
	var wrong *InputError
	if err := l.Check(ScriptRequest("1", *script)); !errors.As(err, &wrong) ||
		!strings.Contains(wrong.Hint(), "images build verify") {
		t.Errorf("without an image: got %v, want what to build", err)
	}
}
