package redislimit_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/redislimit"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// server is a Redis server started by the test.
type server struct {
	address string
	process *os.Process
	ended   chan struct{}
}

func start(t *testing.T, more ...string) *server {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		if testenv.WantsSandboxes() {
			t.Fatal("redis-server is missing (run `make setup` first)")
		}
		t.Skip("needs redis-server: run `make setup`")
	}
	socket := filepath.Join(t.TempDir(), "redis.sock")
	cmd := exec.Command(
		program, append([]string{"--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no"},
			more...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &server{"unix://" + socket, cmd.Process, make(chan struct{})}
	ready := make(chan bool, 1)
	go func() {
		defer close(s.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.Contains(strings.ToLower(lines.Text()), "ready to accept connections") {
				ready <- true
			}
		}
		_ = cmd.Wait() // it is killed
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-s.ended
	})
	select {
	case <-ready:
	case <-s.ended:
		t.Fatal("redis-server ended")
	}
	return s
}

func open(t *testing.T, s *server, most int, span time.Duration) *redislimit.Limiter {
	t.Helper()
	l, err := redislimit.Open(t.Context(), s.address, most, span)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestProcessesShareOneWindow(t *testing.T) {
	s := start(t)
	limiters := []*redislimit.Limiter{open(t, s, 10, time.Hour), open(t, s, 10, time.Hour)}
	var allowed atomic.Int64
	var wait sync.WaitGroup
	for i := range 50 {
		wait.Go(func() {
			switch err := limiters[i%2].Allow(t.Context(), "ann"); {
			case err == nil:
				allowed.Add(1)
			case !errors.Is(err, admission.ErrTooOften):
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if allowed.Load() != 10 {
		t.Errorf("%d of 50 were allowed, want 10", allowed.Load())
	}
	if err := limiters[0].Allow(t.Context(), "bob"); err != nil {
		t.Errorf("another key: %v", err)
	}
}

func TestTheWindowSlides(t *testing.T) {
	s := start(t)
	for window := 50 * time.Millisecond; ; window *= 2 {
		l := open(t, s, 1, window)
		began := time.Now()
		if err := l.Allow(t.Context(), window.String()); err != nil {
			t.Fatal(err)
		}
		refused := 0
		for l.Allow(t.Context(), window.String()) != nil { // until the first request has left the window
			if refused++; refused > 1_000_000 {
				t.Fatal("never allowed again")
			}
		}
		if refused > 0 {
			return
		}
		// If the machine was busy for longer than the window, the result is inconclusive.
		if took := time.Since(began); took < window {
			t.Fatalf("two requests within %v, of which %v allow one", took, window)
		}
	}
}

// if Redis dies or does not answer, nothing is allowed.
func TestWithoutRedisNothingIsAllowed(t *testing.T) {
	s := start(t)
	l := open(t, s, 10, time.Hour)
	if err := l.Allow(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	if err := s.process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.ended
	if err := l.Allow(t.Context(), "ann"); err == nil || errors.Is(err, admission.ErrTooOften) {
		t.Errorf("after its death: %v, want that it cannot tell", err)
	}
}

// a paused Redis allows nothing. After it resumes, it counts again.
func TestARedisThatStandsStill(t *testing.T) {
	s := start(t)
	l := open(t, s, 10, time.Hour)
	if err := s.process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := l.Allow(t.Context(), "ann"); err == nil || errors.Is(err, admission.ErrTooOften) {
		t.Errorf("%v, want that it cannot tell", err)
	}
	if err := s.process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := l.Allow(t.Context(), "ann"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// A server that accepts connections and never answers, and one that does not speak Redis.
func TestARedisThatLies(t *testing.T) {
	for name, reply := range map[string]string{"silent": "", "no Redis": "HTTP/1.1 200 OK\r\n\r\n",
		"nonsense": ":7\r\n"} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					go func() {
						defer conn.Close()
						for in := bufio.NewReader(conn); ; {
							if _, err := in.ReadString('\n'); err != nil {
								return
							}
							fmt.Fprint(conn, reply)
						}
					}()
				}
			}()
			l, err := redislimit.Open(t.Context(), "redis://"+listener.Addr().String(), 10, time.Hour)
			if err != nil {
				return // it was not accepted as Redis
			}
			defer l.Close()
			if err := l.Allow(t.Context(), "ann"); err == nil || errors.Is(err, admission.ErrTooOften) {
				t.Errorf("%v, want that it cannot tell", err)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	for _, address := range []string{"", "localhost:6379", "http://localhost", "redis://:hunter2@localhost:x"} {
		_, err := redislimit.Open(t.Context(), address, 1, time.Second)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", address, err)
		}
	}
}
