// Package export sets up OpenTelemetry. It is the only importer of the SDK and its
// exporters. Nothing is exported unless OpenTelemetry's environment variables (OTEL_*)
// configure a destination.
package export

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

// Options configure the export.
type Options struct {
	Version    string                   // Airlock's own
	Getenv     func(name string) string // nil means os.Getenv
	Prometheus bool                     // Handler serves the metrics, independent of the environment
	Failed     func(error)              // called for each failed export; must be safe for concurrent use
}

// Exporter exports until it is closed. The zero value exports nothing.
type Exporter struct {
	logs    *log.LoggerProvider // nil: no logs
	handler http.Handler
	undo    []func(context.Context) error
}

// closeTime bounds what is left to export at the end.
const closeTime = 5 * time.Second

// A ConfigError reports an environment variable with an unsupported value.
type ConfigError struct {
	Variable string
	Problem  string // one sentence
	Advice   string
}

// Error returns the variable and the problem.
func (e *ConfigError) Error() string { return e.Variable + " " + e.Problem }

// Hint returns what to write instead.
func (e *ConfigError) Hint() string { return e.Advice }

// Open starts the exports that the environment configures. The caller must close the
// Exporter. Open sets the global providers, so it must be called only once. Exports go
// through queues of bounded length. If a queue is full, telemetry is dropped, and no
// caller blocks.
func Open(ctx context.Context, opts Options) (_ *Exporter, err error) {
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	e := &Exporter{}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close(ctx))
		}
	}()
	wanted, err := wantedSignals(opts.Getenv)
	if err != nil {
		return nil, err
	}
	if len(wanted) == 0 && !opts.Prometheus {
		return e, nil
	}
	if opts.Failed != nil {
		otel.SetErrorHandler(otel.ErrorHandlerFunc(opts.Failed))
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "airlock"),
			attribute.String("service.version", opts.Version)),
		resource.WithFromEnv()) // the later one wins
	if err != nil {
		return nil, &ConfigError{"OTEL_RESOURCE_ATTRIBUTES", "cannot be read: " + err.Error(),
			"write key=value pairs with commas between them"}
	}
	if wanted["TRACES"] {
		err = errors.Join(err, e.traces(ctx, about))
	}
	if wanted["LOGS"] {
		err = errors.Join(err, e.records(ctx, about))
	}
	if wanted["METRICS"] || opts.Prometheus {
		err = errors.Join(err, e.metrics(ctx, about, wanted["METRICS"], opts.Prometheus))
	}
	return e, err
}

// wantedSignals returns which of TRACES, METRICS and LOGS the environment enables, by an
// exporter or an OTLP endpoint.
func wantedSignals(getenv func(string) string) (map[string]bool, error) {
	wanted := map[string]bool{}
	if off, _ := strconv.ParseBool(getenv("OTEL_SDK_DISABLED")); off {
		return wanted, nil
	}
	for _, signal := range []string{"TRACES", "METRICS", "LOGS"} {
		variable := "OTEL_" + signal + "_EXPORTER"
		named := getenv(variable)
		if strings.Contains(named, "console") {
			return nil, &ConfigError{variable, "asks for the console, but stdout is what Airlock answers on",
				"write otlp, and OTEL_EXPORTER_OTLP_ENDPOINT"}
		}
		endpoint := getenv("OTEL_EXPORTER_OTLP_ENDPOINT") + getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT")
		if named != "none" && (named != "" || endpoint != "") {
			wanted[signal] = true
		}
	}
	return wanted, nil
}

func (e *Exporter) traces(ctx context.Context, about *resource.Resource) error {
	to, err := newSpanExporter(ctx)
	if err != nil {
		return fmt.Errorf("setting up the export of traces: %w", err)
	}
	provider := trace.NewTracerProvider(trace.WithBatcher(to), trace.WithResource(about))
	otel.SetTracerProvider(provider)
	e.undo = append(e.undo, provider.Shutdown)
	return nil
}

func (e *Exporter) records(ctx context.Context, about *resource.Resource) error {
	to, err := newLogExporter(ctx)
	if err != nil {
		return fmt.Errorf("setting up the export of logs: %w", err)
	}
	e.logs = log.NewLoggerProvider(log.WithProcessor(log.NewBatchProcessor(to)), log.WithResource(about))
	e.undo = append(e.undo, e.logs.Shutdown)
	return nil
}

func (e *Exporter) metrics(ctx context.Context, about *resource.Resource, pushed, scraped bool) error {
	options := []metric.Option{metric.WithResource(about), metric.WithCardinalityLimit(maxSeries)}
	if pushed {
		reader, err := newMetricReader(ctx)
		if err != nil {
			return fmt.Errorf("setting up the export of metrics: %w", err)
		}
		options = append(options, metric.WithReader(reader))
	}
	if scraped {
		registry := prometheus.NewRegistry()
		if err := registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})); err != nil {
			return fmt.Errorf("setting up the metrics of the process: %w", err)
		}
		reader, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
		if err != nil {
			return fmt.Errorf("setting up the metrics for Prometheus: %w", err)
		}
		options = append(options, metric.WithReader(reader))
		e.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
	}
	provider := metric.NewMeterProvider(options...)
	otel.SetMeterProvider(provider)
	e.undo = append(e.undo, provider.Shutdown)
	return nil
}

// maxSeries is how many combinations of attributes one metric may have; what is
// beyond them is counted together.
const maxSeries = 5000

// Handler serves the metrics in Prometheus' text format. It is nil unless they were
// asked for.
func (e *Exporter) Handler() http.Handler { return e.handler }

// Logger returns a logger that also exports its records, if logs are exported. Records
// must not contain secrets.
func (e *Exporter) Logger(local *slog.Logger) *slog.Logger {
	if e.logs == nil {
		return local
	}
	return slog.New(slog.NewMultiHandler(local.Handler(),
		atLeastInfo{otelslog.NewHandler("airlock", otelslog.WithLoggerProvider(e.logs))}))
}

// atLeastInfo discards debug records.
type atLeastInfo struct{ slog.Handler }

// Enabled is false for debug output.
func (h atLeastInfo) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo && h.Handler.Enabled(ctx, level)
}

// WithAttrs keeps the level.
func (h atLeastInfo) WithAttrs(attrs []slog.Attr) slog.Handler {
	return atLeastInfo{h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the level.
func (h atLeastInfo) WithGroup(name string) slog.Handler {
	return atLeastInfo{h.Handler.WithGroup(name)}
}

// Close exports what is left, within a few seconds, and ends the export. Calling it
// twice is fine.
func (e *Exporter) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	var errs []error
	for i := len(e.undo) - 1; i >= 0; i-- {
		errs = append(errs, e.undo[i](ctx))
	}
	e.undo = nil
	return errors.Join(errs...)
}
