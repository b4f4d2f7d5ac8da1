package witness

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/reach"
)

// priority is facility "log audit" (13), severity informational (6): RFC 5424, 6.2.1.
const priority = 13*8 + 6

// submitTimeout bounds one attempt.
const submitTimeout = 10 * time.Second

// syslog sends checkpoints as messages of RFC 5424.
type syslog struct {
	networks []string // tried in this order
	address  string
}

// Submit sends one message over a new connection. syslog has no answers, so a message
// may be lost without an error.
func (s *syslog) Submit(ctx context.Context, c Checkpoint) ([]byte, error) {
	text := fmt.Sprintf("size=%d %s%s", c.Size, syslogNote, base64.StdEncoding.EncodeToString(c.Note))
	if err := s.send(ctx, "audit-checkpoint", []string{text}); err != nil {
		return nil, fmt.Errorf("the audit witness: %w", err)
	}
	return nil, nil
}

// send sends messages over a new connection.
func (s *syslog) send(ctx context.Context, id string, texts []string) error {
	ctx, cancel := context.WithTimeout(ctx, submitTimeout)
	defer cancel()
	var conn net.Conn
	var err error
	for _, network := range s.networks {
		if conn, err = reach.Configured().DialContext(ctx, network, s.address); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	for _, text := range texts {
		message := syslogMessage(id, text, time.Now())
		if network := conn.RemoteAddr().Network(); network == "tcp" || network == "unix" {
			message = fmt.Sprintf("%d %s", len(message), message) // octet counting: RFC 6587, 3.4.1
		}
		if _, err := conn.Write([]byte(message)); err != nil {
			return err
		}
	}
	return nil
}

// syslogNote begins the note in a message, in base64 because it has several lines.
const syslogNote = "note="

func syslogMessage(id, text string, now time.Time) string {
	host, err := os.Hostname()
	if err != nil || host == "" || strings.ContainsAny(host, " \t") {
		host = "-"
	}
	return fmt.Sprintf("<%d>1 %s %s airlock %d %s - %s", priority, now.UTC().Format("2006-01-02T15:04:05.000000Z"),
		host, os.Getpid(), id, text)
}
