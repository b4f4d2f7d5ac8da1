package upstream

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/airlock-mcp/airlock/catalog"
)

// explain implements link.
func (c *stdio) explain(config Config, err error, late bool) *StartError {
	failure := &StartError{ServerID: config.ID, cause: err}
	switch {
	case late && c.skipped.firstText() != "":
		failure.Reason, failure.Problem = ErrNotMCP, fmt.Sprintf("it did not answer within %s", config.StartTimeout)
	case late:
		failure.Reason, failure.Problem = ErrNoAnswer, fmt.Sprintf("it did not answer within %s", config.StartTimeout)
	case isEnd(err) && c.process.exitsWithin(exitTimeout): // its stdout ends a moment before the process does
		failure.Reason, failure.Problem = ErrExited, "it "+c.process.how()+" before it was ready"
	case isEnd(err):
		failure.Reason, failure.Problem = ErrNotMCP, "it closed its stdout"
	default:
		failure.Reason, failure.Problem = ErrNotMCP, "the handshake failed: "+config.conceal(said(err))
	}
	failure.Problem += c.evidence(config)
	return failure
}

// maxQuoted is the maximum number of characters quoted from a server in a problem, which
// the model reads with each search.
const maxQuoted = 200

// evidence returns the relevant output of the server: a line on stdout that is not MCP, and
// the line on stderr with the reason.
func (c *stdio) evidence(config Config) string {
	text := ""
	if rubbish := c.skipped.firstText(); rubbish != "" {
		text += "; it printed " + config.conceal(rubbish) + " on stdout, which is not MCP"
	}
	if cause := causeOf(config.hideAll(c.process.stderrLines())); cause != "" {
		text += "; it said " + catalog.QuoteUpTo(cause, maxQuoted)
	}
	return text
}

// explain implements link.
func (w *httpWire) explain(c Config, err error, late bool) *StartError {
	w.mu.Lock()
	status, page, needed := w.status, w.page, w.needed
	w.mu.Unlock()
	failure := &StartError{ServerID: c.ID, cause: err}
	where := catalog.Quote(plainURL(c.URL))
	var network *net.OpError
	var redirect *redirectError
	var certificate *tls.CertificateVerificationError
	var transport *url.Error
	switch {
	case errors.As(err, &redirect):
		failure.Reason, failure.Problem = ErrNotMCP,
			fmt.Sprintf("%s redirects to %s, where it would need a separate configuration", where,
				catalog.Quote(redirect.to))
	case needed != nil:
		failure.Reason, failure.Problem, failure.cause = ErrSignIn, needed.problem(), needed
	case late:
		failure.Reason, failure.Problem = ErrNoAnswer, fmt.Sprintf("%s did not answer within %s", where, c.StartTimeout)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		failure.Reason, failure.Problem = ErrUnauthorized,
			fmt.Sprintf("%s wants other credentials (HTTP %d)", where, status)
	case status != 0:
		failure.Reason, failure.Problem = ErrNotMCP,
			fmt.Sprintf("%s answered with HTTP %d (%s)", where, status, http.StatusText(status))
		if !c.SSE && (status == http.StatusNotFound || status == http.StatusMethodNotAllowed) {
			failure.Problem += "; if it only speaks the HTTP transport of MCP 2024-11-05, configure it with type: sse"
		}
	case page != nil:
		failure.Reason, failure.Problem = ErrNotMCP,
			fmt.Sprintf("%s answered with a web page%s, not as an MCP server", where, c.titled(*page))
	case errors.As(err, &certificate):
		failure.Reason, failure.Problem = ErrUnreachable,
			fmt.Sprintf("%s has a certificate that is not trusted: %s", where,
				catalog.QuoteUpTo(certificate.Err.Error(), maxQuoted))
	case errors.Is(err, http.ErrSchemeMismatch):
		failure.Reason, failure.Problem = ErrUnreachable,
			fmt.Sprintf("%s does not speak TLS; its address may begin with http:// instead", where)
	case errors.As(err, &network):
		failure.Reason, failure.Problem = ErrUnreachable,
			fmt.Sprintf("%s could not be reached: %s", where, catalog.Quote(network.Err.Error()))
	case errors.As(err, &transport) && isEnd(transport.Err):
		failure.Reason, failure.Problem = ErrNotMCP, fmt.Sprintf("%s closed the connection without an answer", where)
	case errors.As(err, &transport):
		failure.Reason, failure.Problem = ErrNotMCP,
			fmt.Sprintf("%s did not answer as an MCP server: %s", where, c.conceal(transport.Err.Error()))
	default:
		failure.Reason, failure.Problem = ErrNotMCP,
			fmt.Sprintf("%s did not answer as an MCP server: %s", where, c.conceal(said(err)))
	}
	return failure
}

// titled returns the title of a page in words that continue a sentence.
func (c Config) titled(title string) string {
	if title = strings.Join(strings.Fields(title), " "); title == "" {
		return ""
	}
	return " (" + c.conceal(title) + ")"
}

// said describes the error of a handshake: with the server's text if it sent an error, or
// with the SDK's text without types and function names.
func said(err error) string {
	var refusal *jsonrpc.Error
	switch {
	case errors.As(err, &refusal):
		return refusal.Message
	case strings.Contains(err.Error(), "unmarshal"):
		return "an answer does not have the form that MCP requires"
	}
	return err.Error()
}

// conceal makes a server's text fit for a problem: quoted, short, without the
// credentials that the server was given and without paths of this machine.
func (c Config) conceal(text string) string {
	return catalog.QuoteUpTo(withoutPaths(c.hide(text)), maxQuoted)
}

// hide removes the credentials that the server was given. It comes before any
// cut: part of a credential would not be found.
func (c Config) hide(text string) string {
	if c.URL != "" {
		text = strings.ReplaceAll(text, c.URL, plainURL(c.URL))
	}
	for _, secrets := range []map[string]string{c.Env, c.Headers} {
		for _, value := range secrets {
			text = replaceSecret(text, value)
		}
	}
	return text
}

func (c Config) hideAll(lines []string) []string {
	hidden := make([]string, len(lines))
	for i, line := range lines {
		hidden[i] = c.hide(line)
	}
	return hidden
}

// plainURL returns a URL without parts that may be a credential.
func plainURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// replaceSecret hides a credential, and what remains of "Bearer x" without its
// first word. Values too short to be credentials stay: they would hide words.
func replaceSecret(text, secret string) string {
	const shortest = 6 // bytes
	for _, part := range append(strings.Fields(secret), secret) {
		if len(part) >= shortest && !strings.EqualFold(part, "bearer") {
			text = strings.ReplaceAll(text, part, "[redacted]")
		}
	}
	return text
}
