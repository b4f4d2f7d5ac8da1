package oauth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/internal/procfs"
)

// Paths of the local server.
const (
	callbackPath = "/callback" // of the redirect URI of clients that were registered by hand
	startPath    = "/start"
)

// callbackFor returns the path of the redirect URI at an issuer. Each issuer has another one, so that the answer of one
// authorization server is never taken for that of another (RFC 9700, section 4.4). The operator has registered the path
// of a configured client by hand, which is the same at all issuers.
func callbackFor(config Config, at serverMetadata) string {
	if config.ClientID != "" || config.ClientDocument != "" && at.TakesDocuments {
		return callbackPath
	}
	digest := sha256.Sum256([]byte(at.Issuer))
	return callbackPath + "/" + hex.EncodeToString(digest[:8])
}

// callback listens on the loopback interface for the answer to one sign-in (RFC 8252, section 7.3). The browser begins
// at its start page, which gives it a cookie. From then on only that browser can answer.
type callback struct {
	redirect string
	path     string // of redirect
	listener net.Listener
	host     string
	nonce    string // of the start page
	cookie   string // its value
	sameUser bool   // only processes of the user of this process may connect
	address  string // of the authorization server, to which the start page leads

	mu      sync.Mutex
	started bool
}

// listen opens the port. It prefers the port of an earlier sign-in, because a client may be registered with it.
func listen(ctx context.Context, port int, path, earlier string, sameUser bool) (*callback, error) {
	var config net.ListenConfig
	addresses := []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	if was, err := portOf(earlier); port == 0 && err == nil {
		addresses = []string{net.JoinHostPort("127.0.0.1", was), addresses[0]}
	}
	var failed error
	for _, address := range addresses {
		listener, err := config.Listen(ctx, "tcp4", address)
		if err == nil {
			host := listener.Addr().String()
			return &callback{
				redirect: "http://" + host + path, path: path, listener: listener, host: host, nonce: randomText(),
				cookie: randomText(), sameUser: sameUser,
			}, nil
		}
		failed = err
	}
	return nil, fmt.Errorf("listening for the answer of the browser: %w", failed)
}

func portOf(redirect string) (string, error) {
	u, err := url.Parse(redirect)
	if err != nil || u.Port() == "" {
		return "", errors.New("there is no port")
	}
	return u.Port(), nil
}

var _ wayBack = (*callback)(nil)

func (c *callback) uri() string { return c.redirect }

func (c *callback) prepare(*authorization) {}

func (c *callback) close() { c.listener.Close() }

// invite adds the address of the start page. Its first visitor is bound to the sign-in, so other users of this machine
// may know the address: sameUser refuses them.
func (c *callback) invite(i Invitation) Invitation {
	c.address = i.Address
	i.Start = "http://" + c.host + startPath + "/" + c.nonce
	return i
}

// outcome is a code or an error.
type outcome struct {
	code string
	err  error
}

// The pages that a browser shows. They are fixed texts.
const (
	pageDone    = "Airlock has the answer. You can close this window."
	pageForeign = "This is not the answer to the sign-in that Airlock waits for."
	pageUsed    = "Airlock has had this answer already. A code is used once."
	pageStarted = "This sign-in was begun in another browser. Begin it again: run airlock login."
	pageUser    = "This browser belongs to another user of this machine than the sign-in. If it is yours, copy the " +
		"address of this page and paste it where you began."
)

// cookieName names the cookie that binds the answer to the browser.
const cookieName = "airlock-sign-in"

// serve answers browsers until ctx ends.
func (c *callback) serve(ctx context.Context, a authorization, answers chan<- outcome) error {
	var once sync.Once
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet || r.Host != c.host || r.URL.Path != c.path &&
			r.URL.Path != startPath+"/"+c.nonce:
			page(w, http.StatusNotFound, pageForeign)
			return
		case c.sameUser && !procfs.IsOwnConnection(r.RemoteAddr, c.host):
			page(w, http.StatusForbidden, pageUser)
			return
		case r.URL.Path != c.path:
			c.begin(w, r)
			return
		}
		code, err := a.code(r.URL.Query())
		if errors.Is(err, errForeign) || !c.isBound(r) {
			page(w, http.StatusBadRequest, pageForeign)
			return
		}
		status, text := http.StatusGone, pageUsed
		once.Do(func() {
			answers <- outcome{code, err}
			status, text = http.StatusOK, pageDone
		})
		page(w, status, text)
	})
	server := &http.Server{
		Handler: handler, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 10 * time.Second,
		MaxHeaderBytes: 64 << 10,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(c.listener) }()
	<-ctx.Done()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if server.Shutdown(ending) != nil { // a browser that does not read its page
		server.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// begin sends the first visitor, and no other, to the authorization server.
func (c *callback) begin(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	again := c.started
	c.started = true
	c.mu.Unlock()
	if again && !c.isBound(r) {
		page(w, http.StatusGone, pageStarted)
		return
	}
	// Strict cookies are not sent when the authorization server redirects to the callback.
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: c.cookie, Path: c.path, HttpOnly: true,
		SameSite: http.SameSiteLaxMode})
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: c.cookie, Path: startPath, HttpOnly: true,
		SameSite: http.SameSiteLaxMode})
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, c.address, http.StatusSeeOther)
}

// isBound reports whether a request is of the browser that began. If nobody has visited the start page, the person has
// opened the address of the authorization server, which only the person has.
func (c *callback) isBound(r *http.Request) bool {
	c.mu.Lock()
	started := c.started
	c.mu.Unlock()
	cookie, err := r.Cookie(cookieName)
	return !started || err == nil && subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(c.cookie)) == 1
}

// page writes a page that runs nothing, loads nothing, and is not cached.
func page(w http.ResponseWriter, status int, text string) {
	for name, value := range map[string]string{
		"Content-Type":            "text/html; charset=utf-8",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
		"Cache-Control":           "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
		"Connection": "close",
	} {
		w.Header().Set(name, value)
	}
	w.WriteHeader(status)
	fmt.Fprintf(w, "<!doctype html><meta charset=utf-8><title>Airlock</title><p>%s</p>\n", text)
}
