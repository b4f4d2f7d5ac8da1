package agekey_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

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
		"Load":         func() (string, error) { k, err := agekey.Load(path); return public(k), err },
		"LoadOrCreate": func() (string, error) { k, err := agekey.LoadOrCreate(path); return public(k), err },
	} {
		if got, err := load(); err != nil || got != public(made) {
			t.Errorf("%s: got another key, %v", name, err)
		}
	}
}

func public(k *agekey.Key) string { return k.Recipient().String() }

func TestAFileWithoutAKeyIsNotQuoted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "one.key")
	if err := os.WriteFile(path, []byte("AGE-SECRET-KEY-1BROKEN"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := agekey.Load(path); err == nil || strings.Contains(err.Error(), "BROKEN") {
		t.Errorf("got %v, want an error that does not show the file", err)
	}
}

// Own decrypts texts of the same identity only: those of Own, and those encrypted to its public key (#24).
func TestOwn(t *testing.T) {
	keys := make([]*age.X25519Identity, 2)
	for i := range keys {
		var err error
		if keys[i], err = age.GenerateX25519Identity(); err != nil {
			t.Fatal(err)
		}
	}
	own, again, other := agekey.OwnOf(agekey.Of(keys[0])), agekey.OwnOf(agekey.Of(keys[0])),
		agekey.OwnOf(agekey.Of(keys[1]))
	seal := func(to age.Recipient) []byte {
		sealed, err := agekey.Seal(to, []byte("a "), []byte("text"))
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	}
	changed := seal(own)
	changed[len(changed)-1] ^= 1
	for name, c := range map[string]struct {
		sealed []byte
		with   age.Identity
		opens  bool
	}{
		"own":                 {seal(own), again, true},
		"for the public key":  {seal(keys[0].Recipient()), own, true},
		"of another identity": {seal(other), own, false},
		"for another key":     {seal(keys[1].Recipient()), own, false},
		"the identity alone":  {seal(own), keys[0], false},
		"changed":             {changed, own, false},
	} {
		got, err := agekey.Open(c.sealed, c.with)
		if (err == nil) != c.opens || c.opens && string(got) != "a text" {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

// Texts that were encrypted before a rotation can be decrypted after it, in all three forms, and new texts are
// encrypted to the new identity alone (issue 27).
func TestRotate(t *testing.T) {
	dir := t.TempDir()
	path, public := filepath.Join(dir, "one.key"), filepath.Join(dir, "one.pub")
	before, err := agekey.LoadOrCreate(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(public, []byte(before.Recipient().String()), 0o644); err != nil {
		t.Fatal(err)
	}
	old := map[string][]byte{}
	seal := func(name string, to age.Recipient) {
		var err error
		if old[name], err = agekey.Seal(to, []byte("a text")); err != nil {
			t.Fatal(err)
		}
	}
	seal("the first key", before.Recipient())
	seal("the first key's own", agekey.OwnOf(before))
	for range 2 {
		if rotated, err := agekey.Rotate(path, public); err != nil || !rotated {
			t.Fatal(rotated, err)
		}
	}
	after, err := agekey.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	seal("the last key", after.Recipient())
	seal("the last key's own", agekey.OwnOf(after))
	for name, sealed := range old {
		if text, err := agekey.Open(sealed, agekey.OwnOf(after)); err != nil || string(text) != "a text" {
			t.Errorf("%s: got %q, %v", name, text, err)
		}
		if _, err := agekey.Open(sealed, agekey.OwnOf(before)); (err == nil) != strings.HasPrefix(name, "the first") {
			t.Errorf("%s: the first key alone: %v", name, err)
		}
	}
	for name, sealed := range old {
		renewed, err := after.Renew(sealed)
		if current := strings.HasPrefix(name, "the last"); err != nil || (renewed == nil) != current {
			t.Errorf("%s: renewing: %d bytes, %v", name, len(renewed), err)
		} else if !current {
			if text, err := agekey.Open(renewed, agekey.OwnOf(after)); err != nil || string(text) != "a text" {
				t.Errorf("%s: renewed, it is %q, %v", name, text, err)
			}
			if _, err := agekey.Open(renewed, agekey.OwnOf(before)); err == nil {
				t.Errorf("%s: renewed, the first key opens it", name)
			}
		}
	}
	if _, err := before.Renew(old["the last key"]); err == nil {
		t.Error("a text for another key is renewed")
	}
	if text, err := os.ReadFile(public); err != nil || strings.TrimSpace(string(text)) != after.Recipient().String() {
		t.Errorf("the public key is %q, %v", text, err)
	}
	other := filepath.Join(dir, "other.key")
	if err := os.WriteFile(other, []byte("a key of another kind"), 0o600); err != nil {
		t.Fatal(err)
	}
	if rotated, err := agekey.Rotate(other, ""); err != nil || rotated {
		t.Errorf("a key of another kind: got %t, %v", rotated, err)
	}
}
