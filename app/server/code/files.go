package code

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// The maximum size of images and sounds in an answer; hosts and models do not accept more. The rest
// is linked, like other files.
const (
	maxShownFile  = 3 << 20  // bytes of one
	maxShownBytes = 10 << 20 // bytes of all
	maxShownFiles = 8
)

// The revisions that added kinds of content.
const (
	withAudio = "2025-03-26"
	withLinks = "2025-06-18"
)

// addFiles adds the attachments of a run: images and sounds as content, other files as links.
func (s *Server) addFiles(ctx context.Context, res *mcp.CallToolResult, envelope orchestrator.Envelope,
	version string) {
	shown, bytes := 0, int64(0)
	for _, f := range envelope.Attachments {
		fits := shown < maxShownFiles && f.Bytes <= maxShownFile && bytes+f.Bytes <= maxShownBytes
		if content := s.shownFile(ctx, envelope.RunID, f, version); fits && content != nil {
			res.Content = append(res.Content, content)
			shown, bytes = shown+1, bytes+f.Bytes
			continue
		}
		note := f.Note
		if !fits && f.Kind != string(attachment.Other) {
			note = "too large, or too many, to be shown"
		}
		addLink(res, f.Name, f.URI, f.MIME, f.Bytes, note, version)
	}
	if file := envelope.ResultFile; file != nil {
		addText(res, fmt.Sprintf("[%s of a result of %d bytes; the whole: %s]", partOf(envelope), file.Bytes, file.URI))
		addLink(res, attachment.ResultName, file.URI, "application/json", file.Bytes, "the whole result", version)
	}
}

// partOf returns the note that replaces a large result.
func partOf(envelope orchestrator.Envelope) string {
	if envelope.Result.OK {
		return "preview"
	}
	return "nothing"
}

// shownFile returns an image or a sound as content, or nil if the file cannot be shown.
func (s *Server) shownFile(ctx context.Context, runID string, f orchestrator.Attached, version string) mcp.Content {
	if f.Kind != string(attachment.Image) && (f.Kind != string(attachment.Audio) || version < withAudio) ||
		f.Bytes > maxShownFile {
		return nil
	}
	_, content, err := s.files.Read(runID, f.Name)
	if err != nil {
		if !errors.Is(err, attachment.ErrNotFound) {
			s.logger.ErrorContext(ctx, "a file of a run could not be shown", slog.String(telemetry.KeyRun, runID),
				slog.Any(telemetry.KeyError, err))
		}
		return nil
	}
	if f.Kind == string(attachment.Image) {
		return &mcp.ImageContent{Data: content, MIMEType: f.MIME}
	}
	return &mcp.AudioContent{Data: content, MIMEType: f.MIME}
}

// addLink adds a link to a file, as text for a revision without links.
func addLink(res *mcp.CallToolResult, name, uri, mime string, size int64, note, version string) {
	if version < withLinks {
		addText(res, fmt.Sprintf("file %s (%s, %d bytes): %s", name, mime, size, uri))
		return
	}
	res.Content = append(res.Content, &mcp.ResourceLink{URI: uri, Name: name, MIMEType: mime, Size: &size,
		Description: note})
}
