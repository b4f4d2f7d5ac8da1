package objects_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/airlock-mcp/airlock/internal/objects"
	"github.com/airlock-mcp/airlock/internal/objects/objectstest"
)

// Both kinds of stores keep what was put, and know what is missing (issue 28).
func TestStores(t *testing.T) {
	server := objectstest.Start(t)
	for name, address := range map[string]string{
		"a directory":          "file://" + t.TempDir() + "/new",
		"a bucket":             server.Address(""),
		"a prefix in a bucket": server.Address("team/airlock"),
	} {
		t.Run(name, func(t *testing.T) {
			s, err := objects.Open(address)
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			if _, err := s.Get(ctx, "logs/a/1"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a missing object: got %v, want %v", err, fs.ErrNotExist)
			}
			large := bytes.Repeat([]byte("0123456789abcdef"), 5<<20/16)
			var putting sync.WaitGroup
			for i := range 8 {
				putting.Go(func() {
					if err := s.Put(ctx, fmt.Sprintf("logs/a/%d", i), large); err != nil {
						t.Error(err)
					}
				})
			}
			putting.Wait()
			for object, content := range map[string]string{"logs/a/1": "again", "logs/b c/ü": "", "other/x": "x"} {
				if err := s.Put(ctx, object, []byte(content)); err != nil {
					t.Fatal(err)
				}
				if got, err := s.Get(ctx, object); err != nil || string(got) != content {
					t.Errorf("%s: got %q, %v", object, got, err)
				}
			}
			if got, err := s.Get(ctx, "logs/a/7"); err != nil || !bytes.Equal(got, large) {
				t.Errorf("a large object: got %d bytes, %v", len(got), err)
			}
			for range 2 {
				if err := s.Delete(ctx, "logs/a/1"); err != nil {
					t.Error(err)
				}
			}
			if _, err := s.Get(ctx, "logs/a/1"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a removed object: got %v", err)
			}
			if err := s.Put(ctx, "large", make([]byte, 64<<20+1)); !errors.Is(err, objects.ErrTooLarge) {
				t.Errorf("an object that is too large: got %v", err)
			}
			for _, object := range []string{"", ".", "../x", "/x", "a//b", "a/../../x", `a\b`, "a/"} {
				if err := s.Put(ctx, object, nil); err == nil {
					t.Errorf("the name %q was accepted", object)
				}
			}
		})
	}
	if _, err := os.Stat(filepath.Join(server.Files(), "team/airlock/other/x")); err != nil {
		t.Error(err)
	}
}

// A server that is away, other credentials and a missing bucket are errors that name the store and no secret.
func TestAStoreThatDoesNotAnswer(t *testing.T) {
	server := objectstest.Start(t)
	missing, err := objects.Open(strings.Replace(server.Address(""), "//bucket/", "//another/", 1))
	if err != nil {
		t.Fatal(err)
	}
	s, err := objects.Open(server.Address(""))
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, s *objects.Store) {
		t.Helper()
		err := s.Put(t.Context(), "x", []byte("x"))
		if err == nil || !strings.Contains(err.Error(), "the object store") ||
			strings.Contains(err.Error(), "a secret") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	check("a missing bucket", missing)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "another")
	check("another key", s)
	server.Stop()
	check("away", s)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Get(ended, "x"); err == nil {
		t.Error("a cancelled request has a result")
	}
}

func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"":                       "it is not one of",
		"/srv/objects":           "it is not one of",
		"file://host/srv":        "it is not one of",
		"s3:///prefix":           "it is not one of",
		"s3://key:secret@bucket": "it is not one of",
		"s3://bucket?endpoint=x": "endpoint is not a URL",
		"s3://bucket?profile=x":  `the parameter "profile"`,
		"https://bucket":         "it is not one of",
	} {
		if _, err := objects.Open(address); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v, want %q", address, err, want)
		}
	}
}
