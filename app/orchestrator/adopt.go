package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/suspended"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/codegen"
)

// maxAdopted is how many runs a node takes from others at a time.
const maxAdopted = 8

// about returns what is known of the suspended run without its content.
func (s *savedRun) about() suspended.About {
	return suspended.About{Owner: s.Request.Caller.Account(), Image: s.Image, Format: s.Sandbox.Format,
		Number: s.Number, Continued: s.Continued}
}

// The beginnings of the names of files that other nodes need. Those of the runner have names that differ.
const (
	wrappersFile   = "wrappers-" // and the digest of the tree
	attachmentFile = "attachment-"
)

func attachmentName(run string, file attachment.File) string {
	return attachmentFile + run + "-" + file.Digest
}

// filesFor returns the files that another node needs to continue the suspended run: the state and its base, the
// wrappers of its tools, and the attached files.
func (p *pauser) filesFor(s *savedRun) []suspended.File {
	parts := p.run.parts
	var files []suspended.File
	for _, name := range s.Sandbox.Files() {
		files = append(files, suspended.File{Name: name, Read: func() ([]byte, error) {
			return parts.Runner.ReadSaved(name)
		}})
	}
	files = append(files, suspended.File{Name: wrappersFile + filepath.Base(s.Wrappers), Read: func() ([]byte, error) {
		return codegen.Pack(s.Wrappers)
	}})
	for _, attached := range s.Attached {
		files = append(files, suspended.File{Name: attachmentName(s.Request.ID, attached),
			Read: func() ([]byte, error) {
				_, content, err := parts.Attachments.Read(s.Request.ID, attached.Name)
				return content, err
			}})
	}
	return files
}

// bring makes what a node has stored of a suspended run available at this one.
func (o *Orchestrator) bring(ctx context.Context, shared SharedRuns, s *savedRun) error {
	for _, name := range s.Sandbox.Files() {
		if err := o.parts.Runner.WriteSaved(name, func() ([]byte, error) { return shared.Fetch(name) }); err != nil {
			return err
		}
	}
	tree := filepath.Base(s.Wrappers)
	s.Wrappers = filepath.Join(o.parts.Wrappers.dir, tree)
	if lease, err := codegen.Hold(o.parts.Wrappers.dir, tree); err == nil {
		return errors.Join(lease.Close(), o.bringAttached(shared, s))
	}
	packed, err := shared.Fetch(wrappersFile + tree)
	if err != nil {
		return err
	}
	lease, err := codegen.PublishPacked(ctx, o.parts.Wrappers.dir, tree, packed)
	if err != nil {
		return err
	}
	return errors.Join(lease.Close(), o.bringAttached(shared, s))
}

func (o *Orchestrator) bringAttached(shared SharedRuns, s *savedRun) error {
	if o.parts.Attachments == nil || len(s.Attached) == 0 {
		return nil
	}
	return o.parts.Attachments.Adopt(attachment.Set{RunID: s.Request.ID, Owner: s.Request.Caller.Owner(),
		Files: s.Attached}, func(file attachment.File) ([]byte, error) {
		return shared.Fetch(attachmentName(s.Request.ID, file))
	})
}

// Claim takes some suspended runs of nodes of the cluster that do not act any more. Each of them is to be passed to
// Adopt.
func (o *Orchestrator) Claim(ctx context.Context) ([]string, error) {
	shared, ok := o.parts.Suspended.(SharedRuns)
	if !ok {
		return nil, nil
	}
	var images []string
	for _, image := range o.parts.Images {
		images = append(images, plan{image: image}.imageName())
	}
	return shared.Claim(ctx, images, o.parts.Runner.SavedFormat(), maxAdopted)
}

// Adopt returns requests for runs that this node has claimed. Each of them is to be passed to Run once. again are those
// that are to be passed to Adopt again, because they could not be read.
func (o *Orchestrator) Adopt(ctx context.Context, ids []string, logged Logged) (_ []Request, again []string, _ error) {
	requests, again, err := o.continued(ctx, ids, logged)
	for _, request := range requests {
		if saved := request.saved; !saved.Continued && !saved.isOld() { // else it ends, and a record would hide why
			err = errors.Join(err, o.noteAdopted(ctx, saved))
		}
	}
	return requests, again, err
}

// noteAdopted records that a suspended run of another node is at this one.
func (o *Orchestrator) noteAdopted(ctx context.Context, s *savedRun) error {
	p, err := o.restoredPlan(ctx, s.Request)
	if err != nil {
		return err
	}
	record := newRun(p, &o.parts, nil, s.Started).record(audit.KindRunSuspend)
	record.Durable, record.Suspension = true, s.Number
	record.Detail = "taken over from a node of the cluster that does not act any more"
	if err := o.parts.Audit.Note(ctx, record); err != nil {
		return fmt.Errorf("recording that the run %q is at this node: %w", s.Request.ID, err)
	}
	return nil
}

// Abandon ends what this process has of suspended runs that other nodes have taken, because this one had no lease. They
// go on there.
func (o *Orchestrator) Abandon(ctx context.Context) error {
	shared, ok := o.parts.Suspended.(SharedRuns)
	if !ok {
		return nil
	}
	taken, err := shared.Taken(ctx)
	for _, id := range taken {
		if p := o.going.find(id); p != nil {
			p.abandon()
		}
	}
	return err
}

// abandon leaves a suspended run to the node that has taken it.
func (p *pauser) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.suspended && !p.left {
		p.left = true
		p.leaveRun(errTaken)
	}
}

// errTaken is the cause of the end of a run that another node continues.
var errTaken = fmt.Errorf("%w: another node of the cluster has taken it", errLeft)
