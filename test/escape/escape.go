// Package escape attacks sandboxes from inside. Every file under attacks is
// one attempt to reach what a sandbox must not reach, to outlive it, or to
// disturb what runs beside it; every one is expected to fail. README.md says
// how to read and write one.
package escape
