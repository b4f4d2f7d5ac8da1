// Package objectstest starts an S3 server for tests, and lists the objects of stores.
package objectstest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	ended   chan struct{} // closed when the process has ended
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
	s.address = testenv.ReservedAddressAt(t, host)
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

// Names returns the names of the objects below a directory, sorted. root is the directory of a store: that of Files, or
// one in file://root. Files that are being written, whose names begin with a dot, are left out.
func Names(t testing.TB, root, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // removed meanwhile
		case err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), "."):
			return err
		}
		name, err := filepath.Rel(root, path)
		names = append(names, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// startTime is how long Run waits.
const startTime = 30 * time.Second

// Run starts the server again after Stop, and returns when it answers.
func (s *Server) Run() {
	s.t.Helper()
	s.process = exec.Command(filepath.Join(testenv.RepoRoot(s.t), "bin", "versitygw"), "--access", accessKey,
		"--secret", secretKey, "--port", s.address, "--quiet", "posix", s.dir)
	s.process.Stderr = s.t.Output()
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	process, ended := s.process, make(chan struct{})
	s.ended = ended
	go func() {
		_ = process.Wait() // it may have been killed
		close(ended)
	}()
	store, err := objects.Open(s.Address(""))
	if err != nil {
		s.t.Fatal(err)
	}
	deadline := time.After(startTime)
	for {
		_, err := store.Get(s.t.Context(), "none")
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ended:
			s.t.Fatalf("the S3 server has ended: %v", err)
		case <-deadline:
			s.t.Fatalf("the S3 server does not answer: %v", err)
		}
	}
}

// Stop ends the server. Its objects remain.
func (s *Server) Stop() {
	_ = s.process.Process.Kill() // it may have ended
	<-s.ended
}
