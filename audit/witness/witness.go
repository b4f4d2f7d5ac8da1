// Package witness submits checkpoints of a log to a party that stores them out of reach of
// the log's owner: a file on other storage, a syslog server, or an HTTP witness, which checks
// that the log is append-only and signs the checkpoint (C2SP tlog-witness and
// tlog-cosignature).
package witness

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// Checkpoint is a checkpoint to submit to a witness.
type Checkpoint struct {
	Size uint64    // how many records it covers
	Root tlog.Hash // of the tree over them
	Note []byte    // the signed C2SP tlog-checkpoint
	Key  string    // the public key of the log, as note.NewVerifier takes it
	// Prove returns the consistency proof (RFC 6962) from a smaller tree of the log.
	Prove func(old uint64) ([]tlog.Hash, error)
}

// Witness keeps checkpoints. Its methods are not called concurrently.
type Witness interface {
	// Submit sends a checkpoint, which may have been sent before. If it returns nil, the
	// witness has it, as far as its protocol confirms. The result is the note with the
	// witness's signatures, if any. ErrConflict means that the witness knows another
	// history of the log.
	Submit(ctx context.Context, c Checkpoint) (cosigned []byte, err error)
}

// ErrConflict is returned if a witness has seen records that the log does not have: the log was
// restored or rewritten.
var ErrConflict = errors.New("the witness knows another history of the log")

// Open returns the witness at an address:
//
//	/path or file:///path                a file that checkpoints are appended to
//	syslog+unix:///dev/log               syslog on a unix socket
//	syslog+udp://host:514                syslog by UDP; loss is not detected
//	syslog+tcp://host:601                syslog by TCP
//	https://host/prefix                  an HTTP witness, whose public key must be given
//
// Open does not connect; Submit does.
func Open(address, key string) (Witness, error) {
	w, err := open(address, key)
	if err != nil {
		return nil, fmt.Errorf("the audit witness %q: %w", redacted(address), err)
	}
	return w, nil
}

func open(address, key string) (Witness, error) {
	if path, ok := File(address); ok && key == "" {
		return &file{path}, nil
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("it is neither an absolute path nor a URL")
	}
	if IsHTTP(address) {
		if u.Host == "" {
			return nil, errors.New("it names no host")
		}
		return newHTTP(address, key)
	}
	if key != "" {
		return nil, errors.New("only an HTTP witness has a key")
	}
	if s := syslogAt(u); s != nil {
		return s, nil
	}
	return nil, errors.New(
		"it is not one of an absolute path, file:///path, syslog+unix:///path, syslog+udp://host:port, " +
			"syslog+tcp://host:port and https://host/prefix")
}

// syslogAt returns the syslog server at a URL, or nil if it is another URL.
func syslogAt(u *url.URL) *syslog {
	switch {
	case u.Scheme == "syslog+unix" && u.Host == "" && filepath.IsAbs(u.Path):
		return &syslog{networks: []string{"unixgram", "unix"}, address: u.Path}
	case (u.Scheme == "syslog+udp" || u.Scheme == "syslog+tcp") && u.Port() != "" && u.Path == "":
		return &syslog{networks: []string{strings.TrimPrefix(u.Scheme, "syslog+")}, address: u.Host}
	}
	return nil
}

// IsHTTP reports whether an address is that of an HTTP witness.
func IsHTTP(address string) bool {
	return strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://")
}

// File returns the path of a witness that is a file.
func File(address string) (path string, ok bool) {
	path = strings.TrimPrefix(address, "file://")
	return path, filepath.IsAbs(path)
}

// redacted is an address without a password.
func redacted(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Redacted()
	}
	return address
}
