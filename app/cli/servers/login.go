package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// Login is airlock login.
type Login struct {
	verb.ConfigFlag
	Server  string        `arg:"" optional:"" help:"The server, as mcpServers names it."`
	Scope   []string      `placeholder:"SCOPE" sep:"none" help:"A right to ask for beside those that are needed anyway; may be repeated."`
	For     string        `placeholder:"PRINCIPAL" help:"Who is signed in: a principal that calls over HTTP, as its token names it; by default you."`
	Browser bool          `negatable:"" default:"true" help:"Open a browser where there is one."`
	Wait    time.Duration `default:"10m" help:"How long to wait for the person who signs in."`
	JSON    bool          `name:"json" help:"Print JSON."`
}

// LoggedIn is one sign-in in the output of --json.
type LoggedIn struct {
	ServerID string   `json:"server_id"`
	SignedIn bool     `json:"signed_in"`
	Issuer   string   `json:"issuer,omitempty"`
	Account  string   `json:"account,omitempty"` // as the authorization server names it
	Resource string   `json:"resource,omitempty"`
	Scopes   []string `json:"scopes,omitempty"`
	Expires  string   `json:"expires,omitempty"` // RFC 3339; of the access token
	Renews   bool     `json:"renews"`
	Wanted   []string `json:"wanted_scopes,omitempty"`
	Problem  string   `json:"problem,omitempty"`
	Tools    *int     `json:"tools,omitempty"` // after a sign-in
}

// Take copies a sign-in.
func (l *LoggedIn) Take(s oauth.SignedIn) {
	l.Issuer, l.Account, l.Resource, l.Scopes, l.Renews = s.Issuer, s.Account, s.Resource, s.Scopes, s.Renews
	if !s.Expires.IsZero() {
		l.Expires = s.Expires.UTC().Format(time.RFC3339)
	}
}

// Run signs in, and then lists the server's tools to show that it can be used.
func (v *Login) Run(ctx context.Context, s *verb.Streams) error {
	c, err := v.Load(s.Err)
	if err != nil {
		return err
	}
	if v.Server == "" {
		states, err := state.SignInStates(c, verb.Version)
		if err != nil {
			return err
		}
		return v.list(s, states)
	}
	if v.Wait <= 0 {
		return verb.Usage("--wait must be longer than 0", "airlock login SERVER --wait 5m")
	}
	return upstreams.OpenLogin(ctx, c, v.Server, v.For, verb.Version, func(login *upstreams.Login) error {
		return v.signIn(ctx, s, login)
	})
}

func (v *Login) signIn(ctx context.Context, s *verb.Streams, login *upstreams.Login) error {
	waiting, cancel := context.WithTimeout(ctx, v.Wait)
	defer cancel()
	signed, err := login.SignsIn(waiting, &visitor{Streams: s, serverID: v.Server, browses: v.Browser}, v.Scope)
	if err != nil {
		return v.failed(ctx, err)
	}
	tools, err := login.Tools(ctx)
	if err != nil {
		return fmt.Errorf("signed in, but the server cannot be used: %w", err)
	}
	if v.JSON {
		report := LoggedIn{ServerID: v.Server, SignedIn: true, Tools: &tools}
		report.Take(signed)
		return verb.PrintLine(s.Out, report)
	}
	_, err = fmt.Fprintf(s.Out, "signed in to %s at %s: %s\n", v.Server, verb.Clean(signed.Issuer),
		verb.Counted(tools, "tool"))
	return err
}

func (v *Login) failed(ctx context.Context, err error) error {
	var denied *oauth.DeniedError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &denied) && denied.Code == "access_denied":
		return verb.WithHint(err, "nothing has changed; airlock login "+visible.Word(v.Server)+" asks again",
			verb.ExitFailed)
	}
	return err
}

// list prints the sign-ins.
func (v *Login) list(s *verb.Streams, states []state.SignInState) error {
	reports := make([]LoggedIn, 0, len(states))
	for _, state := range states {
		report := LoggedIn{ServerID: state.ServerID, SignedIn: state.IsSignedIn, Wanted: state.Wanted,
			Problem: state.Over + state.Problem}
		report.Take(state.SignedIn)
		reports = append(reports, report)
	}
	if v.JSON {
		return verb.PrintLine(s.Out, map[string]any{"servers": reports})
	}
	if len(reports) == 0 {
		_, err := fmt.Fprintln(
			s.Err, "airlock: no server is one that is signed in to: none has a url without an Authorization header")
		return err
	}
	table := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
	for _, r := range reports {
		fmt.Fprintf(table, "%s\t%s\n", r.ServerID, verb.Clean(r.Words()))
	}
	return table.Flush()
}

// Words describes the state of a sign-in.
func (l LoggedIn) Words() string {
	switch {
	case l.Problem != "":
		return l.Problem
	case !l.SignedIn:
		return "not signed in"
	}
	text := "signed in"
	if l.Account != "" {
		text += " as " + l.Account
	}
	text += " at " + l.Issuer
	if len(l.Scopes) > 0 {
		text += ", scopes " + strings.Join(l.Scopes, " ")
	}
	if !l.Renews && l.Expires != "" {
		text += ", until " + l.Expires
	}
	if len(l.Wanted) > 0 {
		text += "; the server has asked for " + strings.Join(l.Wanted, " ")
	}
	return text
}

// Logout is airlock logout.
type Logout struct {
	verb.ConfigFlag
	Server string `arg:"" help:"The server, as mcpServers names it."`
	For    string `placeholder:"PRINCIPAL" help:"Who is signed out: a principal that calls over HTTP; by default you."`
}

// Run signs out.
func (v *Logout) Run(ctx context.Context, s *verb.Streams) error {
	c, err := v.Load(s.Err)
	if err != nil {
		return err
	}
	var out oauth.LoggedOut
	err = upstreams.OpenLogin(ctx, c, v.Server, v.For, verb.Version, func(login *upstreams.Login) error {
		out, err = login.SignsOut(ctx)
		return err
	})
	switch {
	case err != nil:
		return err
	case !out.WasSignedIn:
		_, err = fmt.Fprintf(s.Out, "not signed in to %s\n", v.Server)
		return err
	case out.NotRevoked != "":
		fmt.Fprintf(s.Err, "airlock: the tokens are forgotten here, but not revoked: %s\nhint: remove Airlock's "+
			"access in the account settings of the service\n", verb.Clean(out.NotRevoked))
	}
	_, err = fmt.Fprintf(s.Out, "signed out of %s\n", v.Server)
	return err
}

// visitor is the person who signs in from a terminal.
type visitor struct {
	*verb.Streams
	serverID string
	browses  bool
	lines    chan string // of stdin; nil before it is read
}

var _ oauth.Person = (*visitor)(nil)

// Invite implements oauth.Person.
func (p *visitor) Invite(ctx context.Context, i oauth.Invitation) error {
	fmt.Fprintf(p.Err, "Sign in to %s\n  for     %s\n  at      %s\n", p.serverID, catalog.Clean(i.Resource),
		catalog.Clean(i.Origin))
	if i.Issuer != i.Origin {
		fmt.Fprintf(p.Err, "  issuer  %s\n", catalog.Clean(i.Issuer))
	}
	if len(i.Scopes) > 0 {
		fmt.Fprintf(p.Err, "  rights  %s\n", catalog.Clean(strings.Join(i.Scopes, " ")))
	}
	if p.browses && openBrowser(ctx, i.Start) {
		fmt.Fprintf(p.Err, "\nA browser has been opened. If it shows nothing, open this address on this "+
			"machine:\n\n%s\n\nWith a browser on another machine, use --no-browser.\n", i.Start)
		return nil
	}
	fmt.Fprintf(p.Err, "\nOpen this address in a browser:\n\n%s\n", i.Address)
	fmt.Fprintf(p.Err, "\nIf the browser is on another machine, it ends at a page that it cannot show: copy the "+
		"address of that page\n(it begins with http://127.0.0.1) and paste it here.\n")
	return nil
}

// OwnsBrowser implements oauth.Person.
func (p *visitor) OwnsBrowser() bool { return true }

// Show implements oauth.Person.
func (p *visitor) Show(s oauth.SignedIn) {
	account := "an account that the authorization server does not name"
	if s.Account != "" {
		account = catalog.Clean(s.Account)
	}
	fmt.Fprintf(p.Err, "\nSigned in as %s. If that is not your account, run `airlock logout %s`.\n", account,
		visible.Word(p.serverID))
}

// openBrowser opens a browser if the environment has a display. address is visible to other users of this machine.
func openBrowser(ctx context.Context, address string) bool {
	program := "xdg-open"
	switch {
	case runtime.GOOS == "darwin":
		program = "open"
	case os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "":
		return false
	}
	command := exec.CommandContext(ctx, program, address)
	return command.Run() == nil // the command ends as soon as the browser has the address
}

// Paste implements oauth.Person: it reads a line.
func (p *visitor) Paste(ctx context.Context) (string, error) {
	if p.lines == nil {
		p.lines = make(chan string)
		go p.read(ctx, p.lines)
	}
	select {
	case line, ok := <-p.lines:
		if !ok {
			return "", io.EOF
		}
		return line, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// maxPasted is the longest line that is read, in bytes.
const maxPasted = 64 << 10

// read sends the lines of stdin to lines. It may still be blocked in a read when the verb ends,
// because a read from a terminal cannot be cancelled. The end of the process ends it.
func (p *visitor) read(ctx context.Context, lines chan<- string) {
	defer close(lines)
	scanner := bufio.NewScanner(p.In)
	scanner.Buffer(nil, maxPasted)
	for scanner.Scan() {
		if strings.TrimSpace(scanner.Text()) == "" {
			continue
		}
		select {
		case lines <- scanner.Text():
		case <-ctx.Done():
			return
		}
	}
}

// Strange implements oauth.Person.
func (p *visitor) Strange() {
	fmt.Fprintf(p.Err, "airlock: this is not the address of the page at the end of this sign-in\nhint: it begins "+
		"with http://127.0.0.1, and has code= and state= in it\n")
}
