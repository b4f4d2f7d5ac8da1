package secrets

import (
	"errors"
	"fmt"
	"io"

	"filippo.io/age"
	"go.yaml.in/yaml/v4"

	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/store"
)

// maxSecretsFile is the most bytes that an encrypted file may hold.
const maxSecretsFile = 1 << 20

// readAge decrypts a file of credentials.
func readAge(path, identityPath string) (map[string]secret.Value, error) {
	if path == "" || identityPath == "" {
		return nil, errors.New("there is no encrypted file of credentials here")
	}
	identities, err := readIdentities(identityPath)
	if err != nil {
		return nil, err
	}
	f, err := store.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	plain, err := age.Decrypt(f, identities...)
	if err != nil {
		return nil, fmt.Errorf("decrypting %q: %w", path, err)
	}
	text, err := io.ReadAll(io.LimitReader(plain, maxSecretsFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("decrypting %q: %w", path, err)
	case len(text) > maxSecretsFile:
		return nil, fmt.Errorf("%q holds more than %d bytes", path, maxSecretsFile)
	}
	var names map[string]string
	if yaml.Unmarshal(text, &names) != nil { // its error would quote the text
		return nil, fmt.Errorf("%q does not hold a YAML mapping of names to texts", path)
	}
	values := make(map[string]secret.Value, len(names))
	for name, value := range names {
		values[name] = secret.New(value)
	}
	return values, nil
}

// readIdentities reads the key, in a file that its owner alone can read.
func readIdentities(path string) ([]age.Identity, error) {
	f, err := store.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%q may be read by others (mode %04o): chmod 600 it", path, info.Mode().Perm())
	}
	identities, err := age.ParseIdentities(f)
	if err != nil {
		return nil, fmt.Errorf("%q holds no age identity", path)
	}
	return identities, nil
}
