package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// serveProxy is a reverse proxy of Go's library before a server, until ctx ends. It prints its URL.
func serveProxy(ctx context.Context, server string) error {
	to, err := url.Parse(server)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	handler := httputil.NewSingleHostReverseProxy(to)
	proxy := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // otherwise early answers are cut
		handler.ServeHTTP(w, r)
	})}
	context.AfterFunc(ctx, func() { _ = proxy.Close() })
	if err := proxy.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// proxied returns a node behind a reverse proxy, which runs until undo.
func (s *serving) proxied(ctx context.Context, undo *cleanup.Stack) (*serving, error) {
	command := exec.CommandContext(ctx, self(), "-proxy", s.url)
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	undo.Add(func() error { return errors.Join(command.Process.Signal(os.Interrupt), command.Wait()) })
	line, err := bufio.NewReader(out).ReadString('\n')
	return &serving{fleet: s.fleet, url: strings.TrimSpace(line)}, err
}
