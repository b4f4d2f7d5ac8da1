package sandboxes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/internal/store"
)

// bundles are the files with the certification authorities that this machine trusts, as the distributions name them.
var bundles = [...]string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
}

// maxBundle is the maximum size of a bundle, in bytes.
const maxBundle = 8 << 20

// Roots writes the files for sandboxes with a network to the directory that they mount, and returns it: cert.pem with
// the certification authorities that this machine trusts, if it has a bundle of them, and resolv.conf.
func Roots(home string) (string, error) {
	directory := store.Roots(home)
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return "", err
	}
	resolver := []byte("nameserver " + egress.Gateway.String() + "\n")
	if err := store.WriteFile(filepath.Join(directory, "resolv.conf"), resolver, 0o644); err != nil {
		return "", err
	}
	for _, path := range bundles {
		info, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() > maxBundle {
			continue
		}
		content, err := store.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("reading the trusted certificates: %w", err)
		}
		return directory, store.WriteFile(filepath.Join(directory, "cert.pem"), content, 0o644)
	}
	return directory, nil
}
