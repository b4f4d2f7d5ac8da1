// Package escape attacks sandboxes from inside. Every file under attacks is one attempt
// to reach something outside of the sandbox, to outlive it, or to disturb other sandboxes.
// Every one is expected to fail. README.md describes the format.
package escape
