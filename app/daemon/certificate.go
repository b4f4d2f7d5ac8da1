package daemon

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/internal/filewatch"
)

// certificate is the server's TLS certificate: two PEM files that may be renewed at any time.
type certificate struct {
	file, key string // paths
	inForce   atomic.Pointer[tls.Certificate]
}

// read loads the certificate from its files. If they do not hold a certificate and its key, it
// keeps the old one and returns an error.
func (c *certificate) read() error {
	pair, err := tls.LoadX509KeyPair(c.file, c.key)
	if err != nil {
		return fmt.Errorf("reading the certificate: %w", err)
	}
	c.inForce.Store(&pair)
	return nil
}

// get returns the certificate for a new connection.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.inForce.Load(), nil
}

// CertificateStays is the log message for a renewed certificate that cannot be used.
const CertificateStays = "the certificate that was in force stays"

// watch reads the certificate again whenever its files change, until ctx ends.
func (l *Listener) watch(ctx context.Context, logger *slog.Logger) {
	if l.certificate == nil {
		return
	}
	files, err := filewatch.New(ctx, l.certificate.file, l.certificate.key)
	if err != nil {
		logger.WarnContext(ctx, "a renewed certificate is read at SIGHUP only", slog.Any("error", err))
		return
	}
	defer files.Close() // the watch is over, so an error does not matter
	// also once before the first change: they may have changed before the watch began
	for more := true; more; _, more = <-files.Changes() {
		err := l.certificate.read()
		if err != nil { // one of the two files may still be being written
			select {
			case <-ctx.Done():
				return
			case <-time.After(filewatch.Settle):
			}
			err = l.certificate.read()
		}
		if err != nil {
			logger.WarnContext(ctx, CertificateStays, slog.Any("error", err))
		}
	}
}
