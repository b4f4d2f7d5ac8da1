package agekey_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/agekey"
)

func TestAKeyIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys", "one.key")
	if _, err := agekey.Load(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v for a missing key, want %v", err, fs.ErrNotExist)
	}
	made, err := agekey.LoadOrCreate(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, load := range map[string]func() (string, error){
		"Load":         func() (string, error) { k, err := agekey.Load(path); return k.String(), err },
		"LoadOrCreate": func() (string, error) { k, err := agekey.LoadOrCreate(path); return k.String(), err },
	} {
		if got, err := load(); err != nil || got != made.String() {
			t.Errorf("%s: got another key, %v", name, err)
		}
	}
}

func TestAFileWithoutAKeyIsNotQuoted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "one.key")
	if err := os.WriteFile(path, []byte("AGE-SECRET-KEY-1BROKEN"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := agekey.Load(path); err == nil || strings.Contains(err.Error(), "BROKEN") {
		t.Errorf("got %v, want an error that does not show the file", err)
	}
}
