package oauth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/airlock-mcp/airlock/internal/reach"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// Limits of what an authorization server may answer.
const (
	maxAnswer    = 256 << 10 // bytes
	maxRedirects = 3         // of a document, within its origin
	maxQuoted    = 200       // characters of its texts
)

// wire sends requests to authorization servers. It never quotes their answers, which
// may have credentials in them.
type wire struct {
	client *http.Client
	dialer *reach.Dialer
}

func newWire(dialer *reach.Dialer) *wire {
	return &wire{&http.Client{Transport: newTransport(dialer), CheckRedirect: sameOrigin}, dialer}
}

func (w *wire) close() { w.client.CloseIdleConnections() }

// sameOrigin follows redirects of documents, within their origin.
func sameOrigin(request *http.Request, via []*http.Request) error {
	first := via[0].URL
	if request.Method != http.MethodGet || len(via) > maxRedirects || request.URL.Scheme != first.Scheme ||
		request.URL.Host != first.Host {
		return http.ErrUseLastResponse
	}
	return nil
}

// errMissing means that there is no such document.
var errMissing = errors.New("there is no such document")

// document reads a JSON document. Its absence is errMissing.
func (w *wire) document(ctx context.Context, address string, into any) error {
	if err := secure(address); err != nil {
		return fmt.Errorf("reading %s: %w", plain(address), err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("reading %s: it is not an address that can be used", plain(address))
	}
	request.Header.Set("Accept", "application/json")
	status, _, body, err := w.send(request)
	switch {
	case err != nil:
		return err
	case status >= 400 && status < 500:
		return errMissing
	case status != http.StatusOK:
		return fmt.Errorf("reading %s: HTTP %d", plain(address), status)
	case strictjson.UnmarshalOpen(body, into) != nil:
		return fmt.Errorf("reading %s: it is not a JSON document of the right form", plain(address))
	}
	return nil
}

// send carries one request. A body that is not JSON is empty.
func (w *wire) send(request *http.Request) (status int, header http.Header, body []byte, err error) {
	ctx, cancel := withTimeout(request.Context())
	defer cancel()
	response, err := w.client.Do(request.WithContext(ctx))
	if err != nil {
		return 0, nil, nil, &unreachableError{plain(request.URL.String()), reason(err)}
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return 0, nil, nil, &unreachableError{plain(request.URL.String()), errors.New("the connection was lost")}
	case len(body) > maxAnswer:
		return 0, nil, nil, fmt.Errorf("%s answered with more than %d bytes", plain(request.URL.String()), maxAnswer)
	}
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		body = nil
	}
	return response.StatusCode, response.Header, body, nil
}

// unreachableError is a request that may succeed later.
type unreachableError struct {
	where string
	cause error
}

// Error names the address.
func (e *unreachableError) Error() string { return fmt.Sprintf("%s: %v", e.where, e.cause) }

// Unwrap returns the cause.
func (e *unreachableError) Unwrap() error { return e.cause }

// reason returns what is below an error of net/http, whose text has the whole URL in it,
// and of package net, whose text has addresses of the network in it.
func reason(err error) error {
	var outer *url.Error
	var network *net.OpError
	var name *net.DNSError
	switch {
	case errors.As(err, &name):
		return errors.New("its name cannot be looked up")
	case errors.As(err, &network):
		return network.Err
	case errors.As(err, &outer):
		return outer.Err
	}
	return err
}

// post sends a form and returns the status, the headers and the answer.
func (w *wire) post(ctx context.Context, address string, form url.Values, header http.Header) (int, http.Header, []byte,
	error) {
	return w.postBody(ctx, address, "application/x-www-form-urlencoded", []byte(form.Encode()), header)
}

func (w *wire) postBody(ctx context.Context, address, kind string, body []byte, header http.Header) (int, http.Header,
	[]byte, error) {
	if err := secure(address); err != nil {
		return 0, nil, nil, fmt.Errorf("sending to %s: %w", plain(address), err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, fmt.Errorf("sending to %s: it is not an address that can be used", plain(address))
	}
	maps.Copy(request.Header, header)
	request.Header.Set("Content-Type", kind)
	request.Header.Set("Accept", "application/json")
	return w.send(request)
}

// plain quotes a URL without the parts that may have a credential in them.
func plain(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "an address that cannot be read"
	}
	return quote((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String())
}

// quote makes a server's text fit for a sentence.
func quote(text string) string {
	return `"` + visible.Text(truncate.Characters(text, maxQuoted)) + `"`
}

// quoteAll quotes each text.
func quoteAll(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = quote(text)
	}
	return strings.Join(quoted, ", ")
}
