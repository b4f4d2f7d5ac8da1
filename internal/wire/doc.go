// Package wire speaks newline-delimited JSON-RPC 2.0 with bounded frames, for
// the one socket between a sandbox and the host.
package wire
