// Package objectstest starts an S3 server for tests.
package objectstest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/airlock-mcp/airlock/internal/objects"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// The credentials of a server.
const (
	accessKey = "tests"
	secretKey = "a secret of tests"
)

// Server is a versitygw with a bucket. Its objects are files.
type Server struct {
	t       testing.TB
	dir     string // of the buckets
	address string // HOST:PORT
	process *exec.Cmd
}

// Start starts a server, and sets the variables with its credentials. If the program was not built, the test is
// skipped, or fails with AIRLOCK_TEST_SANDBOX=1.
func Start(t *testing.T) *Server {
	t.Helper()
	return StartAt(t, "127.0.0.1")
}

// StartAt is Start at an IP address of this machine.
func StartAt(t *testing.T, host string) *Server {
	t.Helper()
	program := filepath.Join(testenv.RepoRoot(t), "bin", "versitygw")
	if _, err := os.Stat(program); err != nil {
		if testenv.WantsSandboxes() {
			t.Fatal("needs an S3 server: run `make setup`")
		}
		t.Skip("needs an S3 server: run `make setup`")
	}
	t.Setenv("AWS_ACCESS_KEY_ID", accessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
	s := &Server{t: t, dir: t.TempDir()}
	if err := os.MkdirAll(s.Files(), 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	s.Run()
	t.Cleanup(s.Stop)
	return s
}

// Address returns the address of the bucket for objects.Open.
func (s *Server) Address(prefix string) string {
	return fmt.Sprintf("s3://bucket/%s?endpoint=http://%s&region=us-east-1", prefix, s.address)
}

// Files returns the directory with the objects.
func (s *Server) Files() string { return filepath.Join(s.dir, "bucket") }

// Run starts the server again after Stop, and returns when it listens.
func (s *Server) Run() {
	s.t.Helper()
	s.process = exec.Command(filepath.Join(testenv.RepoRoot(s.t), "bin", "versitygw"), "--access", accessKey,
		"--secret", secretKey, "--port", s.address, "--quiet", "posix", s.dir)
	s.process.Stderr = s.t.Output()
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	store, err := objects.Open(s.Address(""))
	if err != nil {
		s.t.Fatal(err)
	}
	for s.t.Context().Err() == nil {
		if _, err = store.List(s.t.Context(), "none"); err == nil {
			return
		}
	}
	s.t.Fatal(err)
}

// Stop ends the server. Its objects remain.
func (s *Server) Stop() {
	_ = s.process.Process.Kill() // it may have ended
	_ = s.process.Wait()
}
