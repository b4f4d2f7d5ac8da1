package system

import (
	"context"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/sandboxes"
	"github.com/airlock-mcp/airlock/app/sessionfiles"
	"github.com/airlock-mcp/airlock/app/suspended"
	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/internal/store"
)

// prepare opens what belongs to this machine: images, audit log, sandboxes.
func (s *System) prepare(ctx context.Context) error {
	if err := sandboxes.CheckFiles(); err != nil {
		return err
	}
	var err error
	var missing map[string]error
	if s.images, missing, err = sandboxes.OpenImages(s.config, s.directories.Home, s.undo); err != nil {
		return err
	}
	s.noImages = sandboxes.Refusals(ctx, missing, s.opts.Serving, s.opts.Logger)
	if s.log, err = s.state.OpenLog(ctx, s.directories, s.config, s.undo); err != nil {
		return err
	}
	if s.desk, err = approval.OpenDesk(s.directories.Approvals,
		&approval.Options{HostPID: s.opts.Host, Hosts: s.hostsOnThisMachine, InForce: s.mayApprove,
			IsOwn: s.authority.IsOwn, Local: s.localApprover, Escalation: escalation(s.config),
			OnWithdraw: func(ctx context.Context, g approval.Grant, by string) {
				admission.RecordWithdrawal(ctx, s.log, s.opts.Logger, g, by)
			}, Logger: s.opts.Logger}); err != nil {
		return err
	}
	s.undo.Add(s.desk.Close)
	s.questions = runs.NewQuestions(s.desk)
	if keep := s.config.Replay.Keep; keep > 0 {
		if s.recordings, err = replay.Open(s.directories.Recordings,
			&replay.Options{Keys: s.directories.Keys, Keep: keep, Size: s.config.Replay.Size}); err != nil {
			return err
		}
	}
	kept := s.config.Attachments
	if s.attachments, err = attachment.Open(s.directories.Attachments,
		&attachment.Options{Keys: s.directories.Keys, Keep: kept.Keep, Size: kept.Size}); err != nil {
		return err
	}
	if err = s.openSessionFiles(ctx); err != nil {
		return err
	}
	if err = s.openSuspended(ctx); err != nil {
		return err
	}
	if s.sandboxes, err = sandboxes.Open(ctx, s.config, s.directories.Home, s.opts.Serving, s.opts.Logger); err != nil {
		return err
	}
	s.undo.Add(func() error { return sandboxes.Close(ctx, s.sandboxes) })
	return nil
}

// openSessionFiles opens the files that the runs of a session share, or only removes those of killed processes if none
// are kept.
func (s *System) openSessionFiles(ctx context.Context) error {
	limits := s.config.Session
	if limits.Bytes == 0 {
		return sessionfiles.Sweep(ctx, s.directories.Sessions)
	}
	var err error
	s.sessionFiles, err = sessionfiles.Open(ctx, s.directories.Sessions,
		sessionfiles.Limits{Bytes: limits.Bytes, Files: limits.Files}, limits.Size, s.Node())
	if err == nil {
		s.undo.Add(s.sessionFiles.Close)
	}
	return err
}

// openSuspended opens the store of suspended runs: files of this machine, or the database of the cluster.
func (s *System) openSuspended(ctx context.Context) error {
	if !s.opts.Durable {
		return nil
	}
	if s.config.Cluster.Database == "" {
		files, err := suspended.Open(store.Suspended(s.directories.Home), s.directories.Keys)
		s.suspended = files
		return err
	}
	db, err := s.state.Open(ctx)
	if err != nil {
		return err
	}
	shared, err := suspended.OpenShared(ctx, db, s.state.Node())
	s.suspended = shared
	return err
}
