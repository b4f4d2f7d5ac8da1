package upstream

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// For every stream of events the filter ends, and its output is a well-formed stream whose
// data is JSON-RPC.
func FuzzEventFilter(f *testing.F) {
	f.Add("event: message\nid: 1\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n")
	f.Add("data: {\"jsonrpc\":\"2.0\",\ndata: \"method\":\"m\"}\r\n\r\ndata\n\n: x\nretry: 5\n\n")
	f.Add("event: ping\ndata: 1\n\nid\n\nstray")
	f.Fuzz(func(t *testing.T, stream string) {
		filter := newEventFilter(io.NopCloser(iotest.OneByteReader(strings.NewReader(stream))), jsonrpc.ID{}, newTap(),
			&skipped{log: slog.New(slog.DiscardHandler)})
		out, err := io.ReadAll(filter)
		if err != nil {
			t.Fatalf("got %v, want the end of the stream", err)
		}
		for line := range strings.Lines(string(out)) {
			line = strings.TrimSuffix(line, "\n")
			field, value, ok := strings.Cut(line, ": ")
			switch {
			case line == "":
			case !ok || field != "data" && field != "event" && field != "id" && field != "retry":
				t.Errorf("got the line %q", line)
			case field == "data":
				if _, err := jsonrpc.DecodeMessage([]byte(value)); err != nil {
					t.Errorf("got the data %q: %v", value, err)
				}
			}
		}
	})
}

func TestEventFilterReportsABrokenStream(t *testing.T) {
	filter := newEventFilter(io.NopCloser(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("data: 1\n\n")))),
		jsonrpc.ID{}, newTap(), &skipped{log: slog.New(slog.DiscardHandler)})
	if _, err := io.ReadAll(filter); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("got %v, want the error of the stream", err)
	}
}
