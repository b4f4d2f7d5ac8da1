package oauth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// callbackPath is the one path of the redirect URI.
const callbackPath = "/callback"

// callback listens on the loopback interface for the answer to one sign-in (RFC 8252,
// section 7.3). It redirects nowhere and repeats nothing of what it is sent.
type callback struct {
	redirect string
	listener net.Listener
	host     string
}

// listen opens the port; the port of an earlier sign-in where it is free, since a
// client may be registered with it.
func listen(ctx context.Context, port int, earlier string) (*callback, error) {
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
			return &callback{"http://" + host + callbackPath, listener, host}, nil
		}
		failed = err
	}
	return nil, fmt.Errorf("listening for the answer of the browser: %w", failed)
}

func portOf(redirect string) (string, error) {
	request, err := http.NewRequest(http.MethodGet, redirect, nil)
	if err != nil || request.URL.Port() == "" {
		return "", errors.New("there is no port")
	}
	return request.URL.Port(), nil
}

// outcome is a code, or why there is none.
type outcome struct {
	code string
	err  error
}

// The pages that a browser shows. They are fixed texts.
const (
	pageDone    = "Airlock has the answer. You can close this window."
	pageForeign = "This is not the answer to the sign-in that Airlock waits for."
	pageUsed    = "Airlock has had this answer already. A code is used once."
)

// serve answers browsers until ctx ends, and puts the first answer to a into answers,
// which has room for it.
func (c *callback) serve(ctx context.Context, a authorization, answers chan<- outcome) error {
	var once sync.Once
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != callbackPath || r.Host != c.host {
			page(w, http.StatusNotFound, pageForeign)
			return
		}
		code, err := a.code(r.URL.Query())
		if errors.Is(err, errForeign) {
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
		Handler: handler, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
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

// page writes a page that runs nothing, loads nothing, and is kept nowhere.
func page(w http.ResponseWriter, status int, text string) {
	for name, value := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
		"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "Connection": "close",
	} {
		w.Header().Set(name, value)
	}
	w.WriteHeader(status)
	fmt.Fprintf(w, "<!doctype html><meta charset=utf-8><title>Airlock</title><p>%s</p>\n", text)
}
