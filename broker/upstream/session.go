package upstream

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/catalog"
)

// The protocol revision to begin with. The SDK first asks as a client of the
// newest one (server/discover) and falls back if the server answers that it
// does not know it; some servers hang or exit instead, and get legacyProtocol.
const (
	newestProtocol = ""
	legacyProtocol = "2025-11-25"
	modernProtocol = "2026-07-28"
)

// declared is what Airlock declares to a server: tasks, apps, whether it may ask a person, and
// nothing else, ever. Lists depend on it, so cached lists name it. A server that
// could ask for roots or for the model would be asking past the broker.
func declared(c Config) (*mcp.ClientCapabilities, string) {
	capabilities, name := &mcp.ClientCapabilities{}, "tasks, apps"
	capabilities.AddExtension(extensionTasks, nil)
	capabilities.AddExtension(catalog.ExtensionApps, map[string]any{"mimeTypes": []string{catalog.AppMIME}})
	if c.Elicitation {
		name += ", elicitation"
		capabilities.Elicitation = &mcp.ElicitationCapabilities{
			Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{},
		}
	}
	return capabilities, name
}

// closeTimeout bounds the polite end of a session over HTTP.
const closeTimeout = 2 * time.Second

// session is one live connection to a server, initialized.
type session struct {
	client *mcp.ClientSession
	tap    *tap
	link   link
	// ended is closed when the connection is over, for whatever reason, and
	// nothing of it is left.
	ended chan struct{}

	logs atomic.Int64 // how much the server was asked to log, see wantLogs

	broken  atomic.Bool // a call found out before ended could be closed
	retired atomic.Bool // there are to be no further calls
}

// link is the transport of a session and what is behind it.
type link interface {
	mcp.Transport
	// stop ends the transport and all that runs for it. It may be called twice.
	stop()
	// explain turns a failure of the handshake or the list into a *StartError,
	// before stop. late is set if the time was over.
	explain(c Config, err error, late bool) *StartError
	// skipDiscovery answers the SDK's server/discover in place of the server, as
	// one that does not know the method. It returns false if that is not possible.
	skipDiscovery() bool
	// gone reports whether the other side ended the connection, or it must not be used for new calls.
	gone() bool
}

// shakeHands connects in the given revision.
func (s *server) shakeHands(ctx context.Context, link link, tap *tap, protocol string) (*session, error) {
	capabilities, _ := declared(s.config)
	options := &mcp.ClientOptions{
		Logger:                     slog.New(slog.DiscardHandler), // it logs messages of servers, unbounded
		Capabilities:               capabilities,
		MultiRoundTrip:             &mcp.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { s.announce() },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { s.announce() },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { s.announce() },
	}
	if s.opts.OnUpdated != nil {
		options.ResourceUpdatedHandler = func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			s.opts.OnUpdated(s.config.ID, r.Params.URI)
		}
	}
	if s.opts.OnNotice != nil {
		s.passNotices(options)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "airlock", Version: s.opts.Version}, options)
	if err := sendTasks(client); err != nil {
		return nil, err
	}
	client.AddSendingMiddleware(asWritten, tap.asListening)
	client.AddReceivingMiddleware(requests{s.config, tap}.answer)
	connected, err := client.Connect(ctx, link, &mcp.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		return nil, err
	}
	session := &session{client: connected, tap: tap, link: link, ended: make(chan struct{})}
	go session.watch()
	return session, nil
}

// watch waits for the end of the connection and clears up behind it.
func (s *session) watch() {
	s.client.Wait() // the link knows more than its error
	s.link.stop()
	close(s.ended)
}

// protocol returns the negotiated revision.
func (s *session) protocol() string { return s.client.InitializeResult().ProtocolVersion }

// over reports whether the connection has ended.
func (s *session) over() bool {
	select {
	case <-s.ended:
		return true
	default:
		return s.broken.Load() || s.link.gone()
	}
}

// lost reports whether a call failed because the connection has ended, and
// remembers it.
func (s *session) lost(err error) bool {
	if isEnd(err) {
		s.broken.Store(true)
	}
	return s.over()
}

// isEnd reports whether an error of the SDK means that the connection has ended.
func isEnd(err error) bool {
	for _, end := range []error{mcp.ErrConnectionClosed, mcp.ErrSessionMissing, io.EOF, io.ErrClosedPipe,
		syscall.EPIPE} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// close ends the session. Calls that are still waiting must have been
// cancelled: the SDK waits for them.
func (s *session) close() {
	polite := make(chan struct{})
	go func() {
		defer close(polite)
		s.client.Close()
	}()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-polite:
	case <-timer.C:
	}
	s.link.stop()
	<-polite
	<-s.ended
}
