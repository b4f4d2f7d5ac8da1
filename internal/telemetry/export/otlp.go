package export

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"

	"github.com/airlock-mcp/airlock/internal/reach"
)

// The exporters of OpenTelemetry open connections themselves unless they are given a client. autoexport cannot give
// them one, so it is used for the other exporters only.

// signal is TRACES, METRICS or LOGS, as in the names of variables.
type signal string

const (
	traces  signal = "TRACES"
	metrics signal = "METRICS"
	logs    signal = "LOGS"
)

// get returns the value of OTEL_EXPORTER_OTLP_name for the signal.
func (s signal) get(name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_"+string(s)+"_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
}

// isOTLP reports whether the signal is exported by OTLP.
func (s signal) isOTLP() bool {
	name := os.Getenv("OTEL_" + string(s) + "_EXPORTER")
	return name == "" || name == "otlp"
}

func (s signal) isGRPC() (bool, error) {
	switch protocol := s.get("PROTOCOL"); protocol {
	case "", "http/protobuf":
		return false, nil
	case "grpc":
		return true, nil
	}
	return false, &ConfigError{"OTEL_EXPORTER_OTLP_PROTOCOL", "is not a known protocol", "write http/protobuf or grpc"}
}

// defaultTimeout is that of OpenTelemetry for one export.
const defaultTimeout = 10 * time.Second

// client returns the client for OTLP over HTTP. It follows no redirect.
func (s signal) client() (*http.Client, error) {
	config, err := s.tls()
	if err != nil {
		return nil, err
	}
	timeout := defaultTimeout
	if ms, err := strconv.Atoi(s.get("TIMEOUT")); err == nil && ms > 0 {
		timeout = time.Duration(ms) * time.Millisecond
	}
	return &http.Client{
		Transport:     reach.NewTransport(reach.Configured(), func(t *http.Transport) { t.TLSClientConfig = config }),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       timeout,
	}, nil
}

// tls returns the TLS configuration that the environment describes, or nil.
func (s signal) tls() (*tls.Config, error) {
	roots, certificate, key := s.get("CERTIFICATE"), s.get("CLIENT_CERTIFICATE"), s.get("CLIENT_KEY")
	if roots == "" && certificate == "" && key == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if roots != "" {
		raw, err := os.ReadFile(roots)
		config.RootCAs = x509.NewCertPool()
		if err != nil || !config.RootCAs.AppendCertsFromPEM(raw) {
			return nil, &ConfigError{"OTEL_EXPORTER_OTLP_CERTIFICATE",
				"names a file without a certificate that can be read", "name a file with certificates in PEM"}
		}
	}
	if certificate != "" || key != "" {
		own, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, &ConfigError{"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
				"and OTEL_EXPORTER_OTLP_CLIENT_KEY are not a certificate and its key", "name two files in PEM"}
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}

// dialing are the options with which gRPC connects. Its own resolver would replace the name by an address before the
// dialer sees it.
func dialing() []grpc.DialOption {
	dialer := reach.Configured()
	return []grpc.DialOption{
		grpc.WithResolvers(unresolved{}),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}),
	}
}

// unresolved is the resolver of gRPC for names, which leaves them as they are.
type unresolved struct{}

// Scheme implements resolver.Builder.
func (unresolved) Scheme() string { return "dns" }

// Build implements resolver.Builder.
func (unresolved) Build(target resolver.Target, conn resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver,
	error) {
	address := target.Endpoint()
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(address, "443")
	}
	return unresolved{}, conn.UpdateState(resolver.State{Addresses: []resolver.Address{{Addr: address}}})
}

// ResolveNow implements resolver.Resolver.
func (unresolved) ResolveNow(resolver.ResolveNowOptions) {}

// Close implements resolver.Resolver.
func (unresolved) Close() {}

func newSpanExporter(ctx context.Context) (trace.SpanExporter, error) {
	if !traces.isOTLP() {
		return autoexport.NewSpanExporter(ctx)
	}
	if grpc, err := traces.isGRPC(); grpc || err != nil {
		if err != nil {
			return nil, err
		}
		return otlptracegrpc.New(ctx, otlptracegrpc.WithDialOption(dialing()...))
	}
	client, err := traces.client()
	if err != nil {
		return nil, err
	}
	return otlptracehttp.New(ctx, otlptracehttp.WithHTTPClient(client))
}

func newLogExporter(ctx context.Context) (log.Exporter, error) {
	if !logs.isOTLP() {
		return autoexport.NewLogExporter(ctx)
	}
	if grpc, err := logs.isGRPC(); grpc || err != nil {
		if err != nil {
			return nil, err
		}
		return otlploggrpc.New(ctx, otlploggrpc.WithDialOption(dialing()...))
	}
	client, err := logs.client()
	if err != nil {
		return nil, err
	}
	return otlploghttp.New(ctx, otlploghttp.WithHTTPClient(client))
}

func newMetricReader(ctx context.Context) (metric.Reader, error) {
	if !metrics.isOTLP() {
		return autoexport.NewMetricReader(ctx)
	}
	exporter, err := newMetricExporter(ctx)
	if err != nil {
		return nil, err
	}
	return metric.NewPeriodicReader(exporter), nil
}

func newMetricExporter(ctx context.Context) (metric.Exporter, error) {
	if grpc, err := metrics.isGRPC(); grpc || err != nil {
		if err != nil {
			return nil, err
		}
		return otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithDialOption(dialing()...))
	}
	client, err := metrics.client()
	if err != nil {
		return nil, err
	}
	return otlpmetrichttp.New(ctx, otlpmetrichttp.WithHTTPClient(client))
}
