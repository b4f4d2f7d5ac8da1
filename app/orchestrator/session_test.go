package orchestrator

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/sessionfiles"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/cluster"
)

// done is the end of a run without a result.
const done = `{"ok":true,"has_result":true,"data":null}`

// ofSession is a caller in a session.
func ofSession(id string) Request {
	return Request{Caller: caller.Caller{Principal: "ann", Kind: caller.Local, Session: id}}
}

// A guest gets the number of its session's files, loads them once, and saves at the end. Any
// other order violates the protocol.
func TestSessionFilesOverTheSocket(t *testing.T) {
	const hello = `{"files":[{"path":"a","data":"aGVsbG8="}],"removed":[],"last":%t}`
	var play guest
	l := newLab(t, nil, admission.Limits{}, Options{}, func(ctx context.Context, c *conn) error { return play(ctx, c) })
	var err error
	if l.parts.Sessions, err = sessionfiles.Open(t.Context(), filepath.Join(t.TempDir(), "sessions"),
		sessionfiles.Limits{Bytes: 100, Files: 2}, 1<<20, (*cluster.Node)(nil)); err != nil {
		t.Fatal(err)
	}
	loaded := func(c *conn) (string, error) {
		var answer struct{ Files []sessionfiles.Piece }
		err := c.ask(methodLoad, `{}`, &answer)
		text := ""
		for _, f := range answer.Files {
			text += f.Path + "=" + string(f.Data)
		}
		return text, err
	}
	finds := func(session, want string) {
		t.Helper()
		play = func(_ context.Context, c *conn) error {
			got, err := loaded(c)
			if got != want {
				t.Errorf("%s: got %q, want %q", session, got, want)
			}
			return errors.Join(err, c.ask(methodFinish, done, &struct{}{}))
		}
		l.run(t, ofSession(session))
	}
	finds("ses_1", "")
	play = func(_ context.Context, c *conn) error {
		return errors.Join(c.ask(methodSave, fmt.Sprintf(hello, true), &struct{}{}),
			c.ask(methodFinish, done, &struct{}{}))
	}
	l.run(t, ofSession("ses_1"))
	finds("ses_1", "a=hello")
	finds("ses_2", "")
	play = func(_ context.Context, c *conn) error { // it is over before it has saved all
		return errors.Join(c.ask(methodSave, strings.Replace(fmt.Sprintf(hello, false), "aGVsbG8=", "b3RoZXI=", 1),
			&struct{}{}), c.ask(methodFinish, done, &struct{}{}))
	}
	l.run(t, ofSession("ses_1"))
	finds("ses_1", "a=hello")
	play = func(_ context.Context, c *conn) error {
		var answer struct{ Problem string }
		err := c.ask(methodSave, `{"files":[{"path":"../b","data":""}],"removed":[],"last":true}`, &answer)
		if !strings.Contains(answer.Problem, "path") {
			t.Errorf("a path out of the session: got %q, want a problem", answer.Problem)
		}
		return errors.Join(err, c.ask(methodFinish, done, &struct{}{}))
	}
	l.run(t, ofSession("ses_1"))
	for _, requests := range [][2]string{{methodLoad, methodLoad}, {methodSave, methodSave}} {
		play = func(_ context.Context, c *conn) error {
			params := map[string]string{methodLoad: `{}`, methodSave: fmt.Sprintf(hello, true)}[requests[0]]
			return errors.Join(c.ask(requests[0], params, &struct{}{}), c.ask(requests[1], params, &struct{}{}))
		}
		if got := l.run(t, ofSession("ses_3")).Envelope.Result.Error; got == nil ||
			!strings.Contains(got.Message, "protocol") {
			t.Errorf("%s twice: got %+v, want a broken protocol", requests[0], got)
		}
	}
	l.EndSession("ses_1")
	finds("ses_1", "")
	if err := l.parts.Sessions.Close(); err != nil {
		t.Error(err)
	}
}

// If no files are kept, the guest gets no session.
func TestNoSessionFiles(t *testing.T) {
	l := newLab(t, nil, admission.Limits{}, Options{},
		func(_ context.Context, c *conn) error { return c.ask(methodLoad, `{}`, &struct{}{}) })
	if got := l.run(t, ofSession("ses_1")).Envelope.Result.Error; got == nil ||
		!strings.Contains(got.Message, "protocol") {
		t.Errorf("got %+v, want a broken protocol", got)
	}
}

// attaching is a guest that attaches files, each as name, type and content, and
// then finishes.
func attaching(finish string, answers *[]json.RawMessage, files ...[3]string) guest {
	return func(_ context.Context, c *conn) error {
		var errs []error
		for _, f := range files {
			var answer json.RawMessage
			data := base64.StdEncoding.EncodeToString([]byte(f[2]))
			errs = append(errs, c.ask(methodAttach, fmt.Sprintf(`{"name":%q,"mime":%q,"data":%q}`, f[0], f[1], data),
				&answer))
			*answers = append(*answers, answer)
		}
		return errors.Join(append(errs, c.ask(methodFinish, finish, &struct{}{}))...)
	}
}

// Attached files are redacted, counted and recorded like results.
func TestAttachmentsAreCleanedAndRecorded(t *testing.T) {
	const held = "c4nary-held-0123456789"
	var answers []json.RawMessage
	utf16 := "\xff\xfe" + strings.Join(strings.Split("mail: bob.jones@gmail.com", ""), "\x00") + "\x00"
	l := newLab(t, nil, admission.Limits{}, Options{}, attaching(done, &answers,
		[3]string{"people.csv", "text/csv", "Ann,ann.smith@gmail.com\nkey," + held},
		[3]string{"wide.txt", "text/plain", utf16},
		[3]string{"data.bin", "", "\x00\x01" + held},
		[3]string{held + ".txt", "", "harmless"},
	))
	l.parts.Redactor.Hold(held)
	var err error
	if l.parts.Attachments, err = attachment.Open(filepath.Join(t.TempDir(), "files"), nil); err != nil {
		t.Fatal(err)
	}
	envelope := l.run(t, ofSession("ses_1")).Envelope
	if len(envelope.Attachments) != 3 || envelope.Redactions["email"] != 2 {
		t.Errorf("got %+v and %v, want three files and two addresses", envelope.Attachments, envelope.Redactions)
	}
	for _, f := range envelope.Attachments {
		_, content, err := l.parts.Attachments.Read(envelope.RunID, f.Name)
		if err != nil || strings.Contains(string(content), "gmail") || strings.Contains(string(content)+f.Name, held) {
			t.Errorf("%s: got %q and %v", f.Name, content, err)
		}
	}
	if refused := string(answers[2]); !strings.Contains(refused, "PolicyDenied") || strings.Contains(refused, held) {
		t.Errorf("a binary file with a credential: got %s, want a refusal", refused)
	}
	all := l.records(t)
	if end := all[len(all)-1]; end.Kind != audit.KindRunEnd || strings.Count(end.Detail, "sha256:") != 3 ||
		strings.Contains(end.Detail, held) {
		t.Errorf("the record: got %q, want the three files", end.Detail)
	}
}

// A result that does not fit into the line is stored; a caller that requests a preview gets
// one.
func TestLargeResultsAreKept(t *testing.T) {
	large, err := json.Marshal(map[string]any{"total": 3, "text": strings.Repeat("x", 200_000)})
	if err != nil {
		t.Fatal(err)
	}
	l := newLab(t, nil, admission.Limits{}, Options{},
		attaching(`{"ok":true,"has_result":true,"data":`+string(large)+`}`, &[]json.RawMessage{}))
	if l.parts.Attachments, err = attachment.Open(filepath.Join(t.TempDir(), "files"), nil); err != nil {
		t.Fatal(err)
	}
	var digests []string
	for _, previewed := range []bool{false, true} {
		req := ofSession("ses_1")
		req.PreviewLarge = previewed
		envelope := l.run(t, req).Envelope
		line, err := envelope.Line()
		if err != nil || len(line) > MaxEnvelope {
			t.Errorf("the line has %d bytes, %v", len(line), err)
		}
		if envelope.Result.OK != previewed || previewed &&
			!strings.Contains(string(envelope.Result.Data), `"total":3`) {
			t.Errorf("preview %t: got %s %+v", previewed, envelope.Result.Data, envelope.Result.Error)
		}
		_, content, err := l.parts.Attachments.Read(envelope.RunID, attachment.ResultName)
		if err != nil || string(content) != string(large) || envelope.ResultFile.Bytes != int64(len(large)) ||
			len(envelope.Attachments) != 0 {
			t.Errorf("preview %t: got %d bytes, %+v and %v, want all of it", previewed, len(content),
				envelope.ResultFile, err)
		}
		digests = append(digests, envelope.OutputDigest)
	}
	whole, err := outputDigest(Result{OK: true, Data: large})
	if err != nil || digests[1] != whole || digests[0] == whole {
		t.Errorf("got digests %v, want of the previewed one %s, %v", digests, whole, err)
	}
}
