// Package upstream manages sessions to the MCP servers behind Airlock. It starts servers or
// connects to them, lists their tools and calls them. It tolerates servers that exit, hang,
// flood, lie, or print invalid data. It is the only user of the SDK's client side, and
// exposes no type of the SDK.
//
// Bytes are kept as they arrive: an item of tools/list and a result of tools/call reach the
// caller with every field that the server sent.
package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/reach"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Defaults of Config and Options.
const (
	DefaultStartTimeout = 30 * time.Second
	DefaultCallTimeout  = 60 * time.Second
	DefaultRefresh      = 10 * time.Minute
)

// Config describes how to reach one upstream server: by Command, which speaks MCP on
// stdin and stdout, or by URL, which speaks MCP over streamable HTTP. It may
// hold credentials in Env, Headers and URL, and prints none of them.
type Config struct {
	ID      string
	Command string // looked up in PATH
	Args    []string
	// Env is added to the few variables that a server gets from Airlock's own
	// environment (see docs/catalog.md).
	Env map[string]string
	Dir string // empty means Airlock's own
	// Launcher starts the program in place of Command on this host; nil starts Command. The cached list is that of
	// Command in both cases.
	Launcher Launcher
	URL      string
	SSE      bool // URL speaks the HTTP transport of MCP 2024-11-05 instead
	// Headers go with every request to URL's origin, and to no other.
	Headers map[string]string
	// Credentials sign the requests to URL's origin; nil if the server is not signed in to.
	Credentials  Credentials
	Met          *reach.Met    // records how far away the server of URL is; nil records nothing
	StartTimeout time.Duration // until the tools are listed; 0 means DefaultStartTimeout
	CallTimeout  time.Duration // of one call; 0 means DefaultCallTimeout
	// Elicitation lets the server ask the person behind a call, if the call has a
	// Relay, and declares so. A server never gets more: no model, no directories.
	Elicitation bool
}

// LogValue names the server and how it is reached, without credentials.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(slog.String(telemetry.KeyServer, c.ID), slog.String("command", c.Command),
		slog.String("url", plainURL(c.URL)))
}

// String is what LogValue shows.
func (c Config) String() string {
	return fmt.Sprintf("upstream.Config{ID: %q, Command: %q, URL: %q, [redacted]}", c.ID, c.Command, plainURL(c.URL))
}

// GoString is String.
func (c Config) GoString() string { return c.String() }

// MarshalJSON writes the ID alone.
func (c Config) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "{\"id\":%q}", c.ID), nil }

// Options of New. The zero value is ready to use.
type Options struct {
	Logger  *slog.Logger // nil means no log
	Version string       // Airlock's, as sent to the servers
	// OnChange is called after what Servers returns has changed: a server
	// announced new tools, a refresh found them, it came back, or it is missing
	// for another reason. Calls come one at a time for a server, but concurrently
	// for several. It must not call Close.
	OnChange func(serverID string)
	// OnUpdated, if it is set, is called after a server has sent that a resource has changed that Call has subscribed
	// to. It may run concurrently and must return soon.
	OnUpdated func(serverID, uri string)
	// OnNotice, if it is set, is called for each notification that does not belong to a
	// request, except the announcement of new tools. It may run concurrently and must
	// return soon. Proxies between a client and a server use it.
	OnNotice func(serverID, method string, params json.RawMessage)
	// CacheDir keeps each server's tool list for the next start; it is made where
	// it is missing. Empty keeps nothing.
	CacheDir string
	// Refresh is how often lists are read again, for servers that announce
	// nothing; 0 means DefaultRefresh. A server that names a time to live for
	// its list (MCP 2026-07-28, ttlMs) is asked when that is over.
	Refresh time.Duration
}

// Set is all configured upstream servers. Its methods may be called concurrently.
type Set struct {
	opts    Options
	cache   *listCache // nil keeps nothing
	restore sync.Once

	spawn *spawner

	mu      sync.RWMutex
	servers map[string]*server
	retired map[*server]struct{} // replaced servers that finish their calls
	ending  sync.WaitGroup       // for retired
	closed  bool

	closeOnce sync.Once
	closeErr  error
}

// ErrClosed means that the Set was closed.
var ErrClosed = errors.New("the connections to upstream servers are closed")

// New checks the configurations and returns a Set that has started nothing yet.
// Two servers with one ID, or one without exactly one of Command and URL, are
// errors.
func New(configs []Config, opts *Options) (*Set, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.OnChange == nil {
		o.OnChange = func(string) {}
	}
	if o.Refresh <= 0 {
		o.Refresh = DefaultRefresh
	}
	s := &Set{opts: o, servers: map[string]*server{}, retired: map[*server]struct{}{}, spawn: newSpawner(o.Logger)}
	if o.CacheDir != "" {
		s.cache = &listCache{dir: o.CacheDir, log: o.Logger, now: time.Now}
	}
	for _, c := range configs {
		if err := c.Check(); err != nil {
			return nil, err
		}
		if _, twice := s.servers[c.ID]; twice {
			return nil, fmt.Errorf("two upstream servers have the ID %q", c.ID)
		}
		s.servers[c.ID] = newServer(c.withDefaults(), o, s.spawn, s.cache)
	}
	return s, nil
}

// Check returns an error if no server can be connected with the configuration.
func (c Config) Check() error {
	switch {
	case c.ID == "":
		return errors.New("an upstream server has no ID")
	case c.Command == "" && c.URL == "":
		return fmt.Errorf("upstream server %q has neither a command nor a URL", c.ID)
	case c.Command != "" && c.URL != "":
		return fmt.Errorf("upstream server %q has both a command and a URL", c.ID)
	case c.SSE && c.URL == "":
		return fmt.Errorf("upstream server %q has a transport for URLs, and a command", c.ID)
	}
	if c.URL == "" {
		return nil
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("upstream server %q has a URL that is not http:// or https://", c.ID)
	}
	for name, value := range c.Headers {
		if !validHeader(name, value) {
			return fmt.Errorf("upstream server %q has the header %q, which HTTP does not allow", c.ID, name)
		}
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.StartTimeout <= 0 {
		c.StartTimeout = DefaultStartTimeout
	}
	if c.CallTimeout <= 0 {
		c.CallTimeout = DefaultCallTimeout
	}
	c.Args = slices.Clone(c.Args)
	c.Env = maps.Clone(c.Env)
	c.Headers = maps.Clone(c.Headers)
	return c
}

// Restore reads the lists that earlier Airlocks have cached, and starts nothing:
// Servers then returns them. Further calls do nothing.
func (s *Set) Restore() {
	s.restore.Do(func() {
		var wg sync.WaitGroup
		for _, server := range s.all() {
			wg.Go(server.restore)
		}
		wg.Wait()
	})
}

// Start is Restore, and begins to connect to all servers at once in the
// background. It returns before any of them has answered. A server that cannot be
// connected is tried again after 1, 2, 4 seconds and so on, up to a minute. Call
// either it or Connect, once.
func (s *Set) Start(ctx context.Context) {
	s.Restore()
	for _, server := range s.all() {
		server.startInBackground(ctx)
	}
}

// Connect starts all servers at once and returns when each has listed its tools
// or failed. A failure is kept for Servers and Problem and stops no other
// server; the server is tried again as after Start. Call it once.
func (s *Set) Connect(ctx context.Context) {
	var wg sync.WaitGroup
	for _, server := range s.all() {
		wg.Go(func() { server.start(ctx) })
	}
	wg.Wait()
}

// ConnectUnlisted is Connect for the servers whose tools are not known, after
// Restore; the others are not started. Call it in the place of Connect.
func (s *Set) ConnectUnlisted(ctx context.Context) {
	var wg sync.WaitGroup
	for _, server := range s.all() {
		if !server.isListed() {
			wg.Go(func() { server.start(ctx) })
		}
	}
	wg.Wait()
}

// Await waits until the tools of the named servers, or of all servers if none is named,
// are known, be it from the cache, or until the first attempt to connect to those
// that have none is over. It returns when ctx ends, with its error.
func (s *Set) Await(ctx context.Context, serverIDs ...string) error {
	for _, server := range s.all() {
		if len(serverIDs) > 0 && !slices.Contains(serverIDs, server.config.ID) {
			continue
		}
		select {
		case <-server.decided:
		case <-server.done:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the tools of server %q: %w", server.config.ID, ctx.Err())
		}
	}
	return nil
}

// Servers returns what is known about every server that is not disabled, by ID:
// its tools, or the problem because of which it has none.
func (s *Set) Servers() []catalog.Server {
	list := []catalog.Server{}
	for _, server := range s.all() {
		list = append(list, server.describe())
	}
	return list
}

// Problem returns why the last attempt to connect to a server failed, as a *StartError. It returns nil if the attempt
// succeeded or no attempt has ended.
func (s *Set) Problem(serverID string) error {
	if server, ok := s.find(serverID); ok {
		return server.problem()
	}
	return nil
}

func errNoServer(id string) error { return fmt.Errorf("there is no server %q", id) }

// Refresh reads a server's tools again, and connects first if it is not
// connected. OnChange follows if they changed.
func (s *Set) Refresh(ctx context.Context, serverID string) error {
	server, ok := s.find(serverID)
	if !ok {
		return errNoServer(serverID)
	}
	return server.refresh(ctx)
}

// RefreshAll is Refresh for every server, at once. The error joins those of the
// servers that could not be read.
func (s *Set) RefreshAll(ctx context.Context) error {
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		failed error
	)
	for _, server := range s.all() {
		wg.Go(func() {
			err := server.refresh(ctx)
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
		})
	}
	wg.Wait()
	return failed
}

// Close ends all sessions. When it returns, every process that was started is
// gone and nothing runs any more. It may be called twice.
func (s *Set) Close() error {
	s.closeOnce.Do(func() {
		s.mu.Lock()
		s.closed = true
		servers := slices.AppendSeq(slices.Collect(maps.Keys(s.retired)), maps.Values(s.servers))
		s.mu.Unlock()
		var wg sync.WaitGroup
		for _, server := range servers {
			wg.Go(server.close)
		}
		wg.Wait()
		s.ending.Wait()
		s.closeErr = s.spawn.close()
	})
	return s.closeErr
}
