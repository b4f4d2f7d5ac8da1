package secrets_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/airlock-mcp/airlock/broker/secrets"
)

const secret = "hunter2-and-more"

// encrypted writes an age file with the text and returns it and its key.
func encrypted(t *testing.T, text string) (file, identity string) {
	t.Helper()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := age.Encrypt(&out, key.Recipient())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(w, text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, identity = filepath.Join(dir, "secrets.age"), filepath.Join(dir, "age.key")
	write(t, file, out.String(), 0o600)
	write(t, identity, key.String()+"\n", 0o600)
	return file, identity
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func TestLookup(t *testing.T) {
	file, identity := encrypted(t, "crm: "+secret+"\nempty: ''\n")
	bin := t.TempDir()
	write(t, filepath.Join(bin, "secret-tool"), "#!/bin/sh\n[ \"$*\" = 'lookup service airlock account crm' ] && echo "+
		secret+" || exit 1\n", 0o700)
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	t.Setenv("CRM_TOKEN", secret)
	store := secrets.New(&secrets.Options{AgeFile: file, AgeIdentity: identity})
	tests := []struct{ name, reference, want string }{
		{"the environment", "env:CRM_TOKEN", ""},
		{"the encrypted file", "age:crm", ""},
		{"the keyring", "keyring:crm", ""},
		{"a variable that is not set", "env:CRM_TOKE", "no such credential"},
		{"a name the file lacks", "age:crn", "no such credential"},
		{"a name the keyring lacks", "keyring:crn", "no such credential"},
		{"an empty one", "age:empty", "it is empty"},
		{"another scheme", "vault:crm", "not a reference"},
		{"no name", "env:", "not a reference"},
		{"a plain text", secret, "not a reference"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v, err := store.Lookup(t.Context(), test.reference)
			if test.want == "" {
				if err != nil || v.Reveal() != secret {
					t.Errorf("got %v, %v, want the credential", v, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestEncryptedFilesThatAreWrong(t *testing.T) {
	file, identity := encrypted(t, "crm: "+secret)
	_, other := encrypted(t, "x: y")
	list, listKey := encrypted(t, "- "+secret)
	open := filepath.Join(t.TempDir(), "open.key")
	text, err := os.ReadFile(identity)
	if err != nil {
		t.Fatal(err)
	}
	write(t, open, string(text), 0o644)
	tests := []struct{ name, file, identity, want string }{
		{"no file was named", "", "", "no encrypted file"},
		{"the file is missing", file + "x", identity, "no such file"},
		{"the key is missing", file, identity + "x", "no such file"},
		{"the key is another's", file, other, "decrypting"},
		{"others may read the key", file, open, "may be read by others"},
		{"the key is no key", file, file, "no age identity"},
		{"what it holds is no mapping", list, listKey, "does not hold a YAML mapping"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := secrets.New(&secrets.Options{AgeFile: test.file, AgeIdentity: test.identity}).Lookup(
				t.Context(), "age:crm")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the credential is in the error: %v", err)
			}
		})
	}
}

func TestKeyringWithoutItsProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := secrets.New(nil).Lookup(t.Context(), "keyring:crm"); err == nil ||
		!strings.Contains(err.Error(), "not installed") {
		t.Errorf("got %v, want it to say what is missing", err)
	}
}
