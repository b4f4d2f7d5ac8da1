package code

import (
	"context"
	"errors"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Files is the store of the files that runs have attached: *attachment.Store. Its methods are safe
// for concurrent use.
type Files interface {
	// Files returns the files that a run has attached, with its owner.
	Files(runID string) (attachment.Set, error)
	// Read returns one file of a run.
	Read(runID, name string) (attachment.File, []byte, error)
	// OfCaller returns the files that the runs of a caller have attached, the newest first.
	OfCaller(ctx context.Context, who caller.Caller) []attachment.Set
	// EndSession is called when a session has ended and its files are not needed any more.
	EndSession(session string)
}

// noFiles is an empty store, for a server without Files.
type noFiles struct{}

func (noFiles) Files(string) (attachment.Set, error) { return attachment.Set{}, attachment.ErrNotFound }

func (noFiles) Read(string, string) (attachment.File, []byte, error) {
	return attachment.File{}, nil, attachment.ErrNotFound
}

func (noFiles) OfCaller(context.Context, caller.Caller) []attachment.Set { return nil }

func (noFiles) EndSession(string) {}

// maxListed is the maximum number of files in resources/list. The newest are listed.
const maxListed = 200

// addResources offers the files that a caller's runs have attached.
func (s *Server) addResources() {
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: attachment.Template,
		Name:        "run_file",
		Title:       "File of a run",
		Description: "A file that a program of this session attached with client.attach, or a result that was too " +
			"large to be shown whole (result.json).",
	}, s.readResource)
}

// readResource serves a file to the caller whose run has attached it. For other callers it is not
// found.
func (s *Server) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	runID, name, ok := attachment.ParseURI(uri)
	who := s.Caller(ctx, req)
	if !ok || !who.Known() {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	set, err := s.files.Files(runID)
	if err == nil && !who.May(caller.Hosts, caller.See, caller.Object{Kind: caller.File, Owner: set.Owner}) {
		// A run that waited for a person beyond its session, or its process, is reached from other sessions.
		if _, reached := s.runs.Get(who, runID); !reached {
			err = attachment.ErrNotFound
		}
	}
	var file attachment.File
	var content []byte
	if err == nil {
		file, content, err = s.files.Read(runID, name)
	}
	if errors.Is(err, attachment.ErrNotFound) {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	if err != nil {
		s.logger.ErrorContext(ctx, "a file of a run could not be read", slog.String(telemetry.KeyRun, runID),
			slog.Any(telemetry.KeyError, err))
		return nil, server.ErrUnreadable
	}
	contents := &mcp.ResourceContents{URI: uri, MIMEType: file.MIME}
	if file.IsText() && len(content) > 0 { // it was cleaned when it was attached to the run
		contents.Text = string(content)
	} else {
		contents.Blob = content
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{contents}}, nil
}

// listOwnFiles adds the files of the caller's runs to resources/list. The SDK only has resources
// that all callers share.
func (s *Server) listOwnFiles(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		list, ok := res.(*mcp.ListResourcesResult)
		if !ok || list == nil || err != nil {
			return res, err
		}
		who := s.Caller(ctx, req)
		if !who.Known() {
			return res, nil
		}
		for _, set := range s.files.OfCaller(ctx, who) {
			for _, f := range set.Files {
				if len(list.Resources) == maxListed {
					return res, nil
				}
				list.Resources = append(list.Resources, &mcp.Resource{
					URI: attachment.URI(set.RunID, f.Name), Name: f.Name, Title: f.Name, MIMEType: f.MIME,
					Size: f.Bytes, Description: f.Note,
				})
			}
		}
		return res, nil
	}
}

// ownCache marks results that belong to one caller as cacheable by this caller only
// (MCP 2026-07-28, Caching).
func ownCache(_ context.Context, req mcp.Request, c *mcp.Cacheable) {
	switch req.(type) {
	case *mcp.ReadResourceRequest, *mcp.ListResourcesRequest, *mcp.ListToolsRequest:
		c.CacheScope = "private"
	}
}
