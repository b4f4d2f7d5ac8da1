package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/internal/wire"
	"github.com/airlock-mcp/airlock/redact"
)

// attached are the files that a run has attached.
type attached struct {
	draft *attachment.Draft

	mu      sync.Mutex // guards removed
	removed []redact.Finding
}

// found returns what was redacted in files so far.
func (a *attached) found() []redact.Finding {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.removed)
}

func (a *attached) remove(found []redact.Finding) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.removed = append(a.removed, found...)
}

// draft begins the files of a run. Those of a replay are kept already.
func (o *Orchestrator) draft(p plan) *attachment.Draft {
	store := o.parts.Attachments
	if p.player != nil || p.request.Script != nil {
		store = nil
	}
	if p.request.Restored() && store != nil {
		return store.Continue(p.identity.ID, p.identity.Caller.Owner(), o.opts.Attachments)
	}
	return store.Begin(p.identity.ID, p.identity.Caller.Owner(), o.opts.Attachments)
}

// attachAnswer is the answer to the code for a file that it has attached.
type attachAnswer struct {
	*Attached
	Error *broker.Error `json:"error,omitempty"`
}

// handleAttach accepts a file. Mistakes of the code are reported in the answer; only a
// broken protocol ends the run.
func (r *run) handleAttach(ctx context.Context, req wire.Request) (any, error) {
	var params struct {
		Name string `json:"name"`
		MIME string `json:"mime"`
		Data []byte `json:"data"` // base64 on the socket
	}
	if err := decode(req, &params); err != nil {
		return nil, err
	}
	file, err := r.attach(params.Data, params.MIME, params.Name)
	var limit *attachment.LimitError
	var secret *secretError
	switch {
	case err == nil:
		return attachAnswer{Attached: r.described(file)}, nil
	case errors.As(err, &limit):
		return refusedFile(errortype.Output, limit.Error()), nil
	case errors.As(err, &secret):
		return refusedFile(errortype.PolicyDenied, secret.Error()), nil
	}
	r.parts.Logger.ErrorContext(ctx, "an attachment could not be kept",
		slog.String(telemetry.KeyRun, r.identity.ID), slog.Any(telemetry.KeyError, err))
	return refusedFile(errortype.Sandbox, "the file could not be kept; the run's ID leads to the cause in the log"), nil
}

func refusedFile(kind, message string) attachAnswer {
	return attachAnswer{Error: &broker.Error{Type: kind, Message: message, Source: errortype.SourceBroker}}
}

// secretError refuses a file in which a credential cannot be replaced.
type secretError struct{}

func (*secretError) Error() string {
	return "the file holds a credential of this installation in a form that cannot be taken out; leave it out of the " +
		"file"
}

// attach inspects, cleans and keeps one file.
func (r *run) attach(content []byte, mime, name string) (attachment.File, error) {
	if err := r.files.draft.Admit(int64(len(content))); err != nil {
		return attachment.File{}, err
	}
	var inspected attachment.Inspected
	var cleanedName []byte
	var err error
	// A small image can decode to many pixels, so every file waits for its turn.
	r.inTurn(context.Background(), muchToRedact+1, func() {
		inspected = attachment.Inspect(content, mime, name)
		if err = r.cleanFile(&inspected); err != nil {
			return
		}
		var found []redact.Finding
		cleanedName, found = r.redactor.Bytes([]byte(name))
		r.files.remove(found)
	})
	if err != nil {
		return attachment.File{}, err
	}
	return r.files.draft.Add(inspected, string(cleanedName))
}

// cleanFile replaces secrets and personal data in text files, and refuses other files that
// contain a credential. Images were already reduced to their pixels.
func (r *run) cleanFile(file *attachment.Inspected) error {
	if file.Kind == attachment.Image {
		return nil
	}
	if text, ok := attachment.UTF16(file.Content); ok {
		if cleaned, found := r.redactor.Bytes(text); len(found) > 0 {
			file.Content = cleaned
			r.files.remove(found)
		}
		return nil
	}
	if file.Searchable {
		cleaned, found := r.redactor.Bytes(file.Content)
		file.Content = cleaned
		r.files.remove(found)
		return nil
	}
	if _, found := r.redactor.Held(file.Content); len(found) > 0 {
		return &secretError{}
	}
	return nil
}

// described returns the description of a file for the code and the envelope.
func (r *run) described(f attachment.File) *Attached {
	return &Attached{
		Name: f.Name, MIME: f.MIME, Kind: string(f.Kind), Bytes: f.Bytes,
		URI: attachment.URI(r.identity.ID, f.Name), Note: f.Note,
	}
}

// attachments describes the files that the code has attached.
func (r *run) attachments() []Attached {
	var all []Attached
	for _, f := range r.files.draft.Files() { // a large result comes after them
		all = append(all, *r.described(f))
	}
	return all
}

// keepLarge stores a result that is too large for the envelope as a file, and replaces it
// by a preview if the request asks for one. If the file cannot be stored, the envelope is
// not changed and remains too large.
func (r *run) keepLarge(ctx context.Context, envelope *Envelope) {
	// JSON escapes can make a text six times as long, and a file takes up to 1 KiB.
	if !envelope.Result.OK || 6*len(envelope.Result.Data)+len(envelope.Attachments)<<10 < MaxEnvelope/2 {
		return
	}
	if line, err := envelope.Line(); err != nil || len(line) <= MaxEnvelope {
		return
	}
	file, err := r.files.draft.AddResult(envelope.Result.Data)
	if err != nil {
		r.parts.Logger.ErrorContext(ctx, "a large result could not be kept",
			slog.String(telemetry.KeyRun, r.identity.ID), slog.Any(telemetry.KeyError, err))
		return
	}
	envelope.ResultFile = &ResultFile{URI: attachment.URI(r.identity.ID, file.Name), Bytes: file.Bytes}
	if r.request.PreviewLarge {
		envelope.Result.Data = preview(envelope.Result.Data)
		envelope.Result.Metrics.BytesReturned = int64(len(envelope.Result.Data))
	}
}

// withholdFiles removes what the run has attached.
func (r *run) withholdFiles(ctx context.Context, envelope *Envelope) {
	envelope.Attachments, envelope.ResultFile = nil, nil
	if err := r.files.draft.Discard(); err != nil {
		r.parts.Logger.ErrorContext(ctx, "the files of a run could not be removed",
			slog.String(telemetry.KeyRun, r.identity.ID), slog.Any(telemetry.KeyError, err))
	}
}

// attachedDetail returns the list of attached files for the audit log.
func (r *run) attachedDetail() string {
	var said []string
	for _, f := range r.files.draft.Files() {
		said = append(said, fmt.Sprintf("%q %s %d bytes %s", f.Name, f.MIME, f.Bytes, f.Digest))
	}
	if len(said) == 0 {
		return ""
	}
	return "attached " + strings.Join(said, ", ")
}
