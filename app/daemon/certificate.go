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

// certificate is what TLS shows: a pair of PEM files that may be renewed at any time.
type certificate struct {
	file, key string // paths
	inForce   atomic.Pointer[tls.Certificate]
}

// read puts in force what the files hold; where they do not hold a pair, nothing changes.
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

// CertificateStays is what is logged when a renewed certificate cannot be used.
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
	defer files.Close()                                   // what was watched is watched no more: an error changes nothing
	for more := true; more; _, more = <-files.Changes() { // at first, too: they may have changed before they were watched
		err := l.certificate.read()
		if err != nil { // one of the two files may be written yet
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
