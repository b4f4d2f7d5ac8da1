// Package redislimit limits the request rate of agents across all processes that share a Redis
// server, with a sliding window. If Redis cannot be reached, requests are refused. This is the
// only package that imports the Redis client.
package redislimit

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/internal/reach"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// timeout is the maximum wait of one request for Redis, so that a slow server does not delay
// agents.
const timeout = 500 * time.Millisecond

// slide counts a request of the key KEYS[1] in a sorted set of its newest
// requests, scored by the server's own clock in microseconds, so that processes
// whose clocks differ agree. ARGV: the most requests, the span in microseconds,
// and the request's ID. It returns 1 when the request is allowed.
var slide = redis.NewScript(`
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
local allowed = 0
if redis.call('ZCARD', KEYS[1]) < tonumber(ARGV[1]) then
  redis.call('ZADD', KEYS[1], now, ARGV[3])
  allowed = 1
end
redis.call('PEXPIRE', KEYS[1], math.ceil(ARGV[2] / 1000))
return allowed
`)

// Limiter is an admission.Limiter in Redis. It is safe for concurrent use.
type Limiter struct {
	client *redis.Client
	most   int
	span   time.Duration
}

// ErrAddress is returned for an invalid Redis address.
var ErrAddress = errors.New("the address of Redis is not of the form redis://:password@host:port/database")

// Open connects to a Redis server and allows most requests per key within a span. The address has
// the form redis://[user:password@]host:port[/database], rediss:// with TLS, or unix://PATH. The
// error is ErrAddress, or the reason why the server does not answer. The caller must call Close.
func Open(ctx context.Context, address string, most int, span time.Duration) (*Limiter, error) {
	options, err := redis.ParseURL(address)
	if err != nil {
		return nil, ErrAddress // the client's error contains the address with its password
	}
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout = timeout, timeout, timeout
	options.ContextTimeoutEnabled = true
	options.Dialer = dial(options.TLSConfig)
	options.MaxRetries = -1 // a request that may have been counted is not retried
	l := &Limiter{client: redis.NewClient(options), most: most, span: span}
	if err := l.client.Ping(ctx).Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("asking Redis at %s: %w", options.Addr, err), l.Close())
	}
	return l, nil
}

// dial returns a dialer of the client, with TLS if config is set.
func dial(config *tls.Config) func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := reach.Configured()
	if config != nil {
		dialer.Wrap = func(conn net.Conn) (net.Conn, error) { return tls.Client(conn, config), nil }
	}
	return dialer.DialContext
}

// Allow counts a request. It returns admission.ErrTooOften if there were too many, or the error of Redis.
func (l *Limiter) Allow(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := slide.Run(ctx, l.client, []string{"airlock:agents:" + key}, l.most, l.span.Microseconds(),
		telemetry.NewID("req")).Int()
	switch {
	case err != nil:
		return fmt.Errorf("counting a request in Redis: %w", err)
	case answer == 1:
		return nil
	case answer == 0:
		return admission.ErrTooOften
	}
	return fmt.Errorf("redis answered %d to a count", answer)
}

// Close closes the connections.
func (l *Limiter) Close() error { return l.client.Close() }
