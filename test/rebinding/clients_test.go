package rebinding

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/webhook"
	"github.com/airlock-mcp/airlock/audit/witness"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/telemetry/export"
	"github.com/airlock-mcp/airlock/kernel/models"
)

// submit hands a checkpoint to a witness.
func submit(t *testing.T, address, key string) error {
	t.Helper()
	w, err := witness.Open(address, key)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Submit(t.Context(), witness.Checkpoint{Size: 1, Note: []byte("a\n1\nb\n"),
		Prove: func(uint64) ([]tlog.Hash, error) { return nil, nil }})
	return err
}

// sent exports a record.
func sent(t *testing.T, address string) error {
	t.Helper()
	sink, err := witness.OpenSink(address)
	if err != nil {
		t.Fatal(err)
	}
	return sink.Send(t.Context(), [][]byte{[]byte(`{"resourceLogs":[{}]}`)})
}

// announced sends a message about a question, and returns that it was not delivered the first time.
func announced(t *testing.T, address string) error {
	t.Helper()
	failed := make(chan error, 1)
	s := webhook.New(t.Context(), webhook.Options{
		Endpoints: func(context.Context) ([]webhook.Endpoint, error) {
			return []webhook.Endpoint{{URL: address, Secret: secret.New("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")}}, nil
		},
		Link: func(string) string { return "" }, Awake: func(t time.Time) time.Time { return t },
		Logger: slog.New(slog.DiscardHandler),
		Wait: func(context.Context, time.Duration) error {
			err := errors.New("it was not delivered")
			failed <- err
			return err
		},
	})
	defer s.Close()
	s.Note(approval.Event{Question: approval.Question{ID: "apr_1"}, Open: true})
	select {
	case err := <-failed:
		return err
	case <-t.Context().Done():
		return nil
	}
}

// answered asks a model.
func answered(t *testing.T, address string) error {
	t.Helper()
	m, err := models.New([]models.Model{{Name: "m", URL: address, Model: "m"}})
	if err != nil {
		t.Fatal(err)
	}
	return m.Ask(t.Context(), "ann", []string{"m"}, models.Question{User: "a"})[0].Err
}

// witnessKey returns a public key of the right form.
func witnessKey() string {
	key := bytes.Repeat([]byte{7}, 32)
	sum := sha256.Sum256(fmt.Appendf(nil, "w\n%c%s", 4, key))
	return fmt.Sprintf("w+%08x+%s", binary.BigEndian.Uint32(sum[:4]),
		base64.StdEncoding.EncodeToString(append([]byte{4}, key...)))
}

// unknownJWT returns a JWT of the right form, whose key has to be looked up.
func unknownJWT() string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"EdDSA","kid":"k","typ":"JWT"}`)) + "." + encode([]byte(`{}`)) + "." +
		encode(make([]byte, 64))
}

// exported exports one line of a log by OTLP, and returns why that failed.
func exported(t *testing.T, protocol, endpoint string) error {
	t.Helper()
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1000")
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	var mu sync.Mutex
	var failed error
	e, err := export.Open(t.Context(), export.Options{Version: "test", Failed: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		failed = errors.Join(failed, err)
	}})
	if err != nil {
		t.Fatal(err)
	}
	e.Logger(slog.New(slog.DiscardHandler)).InfoContext(t.Context(), "a line")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err = e.Close(ctx)
	mu.Lock()
	defer mu.Unlock()
	return errors.Join(err, failed)
}

// A collector on this machine is reached by localhost and by its address.
func TestTelemetryIsExportedToThisMachine(t *testing.T) {
	port, connections := victim(t)
	for _, protocol := range []string{"http/protobuf", "grpc"} {
		for _, host := range []string{"localhost", "127.0.0.1"} {
			_ = exported(t, protocol, "http://"+host+":"+port) // the answer of the victim is not one of a collector
			if connections.Swap(0) == 0 {
				t.Errorf("%s to %s: nothing was connected", protocol, host)
			}
		}
	}
}
