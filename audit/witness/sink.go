package witness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/airlock-mcp/airlock/internal/reach"
)

// Sink receives exported records. Its methods are not called concurrently.
type Sink interface {
	// Send sends lines, each one JSON object without a newline. If it returns an error, some of
	// them may have arrived; the caller may send them again.
	Send(ctx context.Context, lines [][]byte) error
}

// OpenSink returns the sink at an address: a file or a syslog server as in Open, or the URL of an
// OTLP/HTTP endpoint for logs, such as http://127.0.0.1:4318/v1/logs. It does not connect.
func OpenSink(address string) (Sink, error) {
	if path, ok := File(address); ok {
		return fileSink{path}, nil
	}
	u, err := url.Parse(address)
	if err == nil && IsHTTP(address) && u.Host != "" {
		return &otlpSink{address, &http.Client{Timeout: submitTimeout,
			Transport:     reach.NewTransport(reach.Configured(), nil),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
	}
	if err == nil {
		if s := syslogAt(u); s != nil {
			return &syslogSink{s}, nil
		}
	}
	return nil, fmt.Errorf("the destination %q is not an absolute path, file:///path, syslog+unix:///path, "+
		"syslog+udp://host:port, syslog+tcp://host:port or https://host/v1/logs", redacted(address))
}

// fileSink appends lines to a file and syncs it.
type fileSink struct{ path string }

func (s fileSink) Send(_ context.Context, lines [][]byte) error {
	f, err := os.OpenFile(s.path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	text := append(bytes.Join(lines, []byte("\n")), '\n')
	if unfinishedLine(f) {
		text = append([]byte("\n"), text...)
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// maxDatagram is the most bytes of a message over UDP.
const maxDatagram = 60 << 10

type syslogSink struct{ to *syslog }

func (s *syslogSink) Send(ctx context.Context, lines [][]byte) error {
	texts := make([]string, len(lines))
	for i, line := range lines {
		if s.to.networks[0] == "udp" && len(line) > maxDatagram {
			return fmt.Errorf("a record of %d bytes does not fit into a datagram: use syslog+tcp://", len(line))
		}
		texts[i] = string(line)
	}
	return s.to.send(ctx, "audit-record", texts)
}

// otlpSink sends log records in OTLP's JSON encoding over HTTP.
type otlpSink struct {
	endpoint string
	client   *http.Client
}

// otlpTop is how each line begins: one export request.
const otlpTop, otlpEnd = `{"resourceLogs":[`, `]}`

func (s *otlpSink) Send(ctx context.Context, lines [][]byte) error {
	parts := make([]string, len(lines))
	for i, line := range lines {
		rest, begins := strings.CutPrefix(string(line), otlpTop)
		part, ends := strings.CutSuffix(rest, otlpEnd)
		if !begins || !ends {
			return errors.New("an OTLP endpoint accepts only the format otlp")
		}
		parts[i] = part
	}
	body := otlpTop + strings.Join(parts, ",") + otlpEnd
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.endpoint, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", redacted(s.endpoint), response.Status)
	}
	if bytes.Contains(answer, []byte(`"rejectedLogRecords"`)) && !bytes.Contains(answer,
		[]byte(`"rejectedLogRecords":"0"`)) && !bytes.Contains(answer, []byte(`"rejectedLogRecords":0`)) {
		return fmt.Errorf("%s rejected records", redacted(s.endpoint))
	}
	return nil
}
