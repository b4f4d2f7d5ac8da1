package upstream

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each file of testdata/stderr is what a program prints when it cannot start: those of
// node, python, sh, go, java, npx and pip were captured, the others written in the
// form of their programs.
func TestCauseOfRealFailures(t *testing.T) {
	want := map[string]string{
		"argparse":       "mcp-server-sqlite: error: the following arguments are required: --db-path",
		"bash_not_found": "bash: line 1: foo-bar-x: command not found",
		"click":          "Error: Invalid value for '-r' / '--repository': Path '.../none' does not exist.",
		"colours":        "ERROR license expired",
		"deno":           "error: Uncaught (in promise) Error: API_KEY is not set",
		"docker_env":     "docker: open .../secrets.env: no such file or directory.",
		"docker_no_daemon": "docker: Cannot connect to the Docker daemon at .../docker.sock. Is the docker " +
			"daemon running?.",
		"docker_no_image": "docker: Error response from daemon: pull access denied for ghcr.io/example/none, " +
			"repository does not exist or may require 'docker login': denied: requested access to the resource is " +
			"denied.",
		"dotnet": "Unhandled exception. System.InvalidOperationException: The connection string is missing",
		"go_fatal": "2026/11/21 22:44:28 cannot open the database: dial tcp 127.0.0.1:5432: connect: " +
			"connection refused",
		"go_panic": "panic: assignment to entry in nil map",
		"java_cause": "Exception in thread \"main\" java.lang.RuntimeException: cannot start; caused by " +
			"java.lang.IllegalStateException: port taken",
		"java_no_class": "Error: Could not find or load main class NoSuchClass; caused by " +
			"java.lang.ClassNotFoundException: NoSuchClass",
		"java_no_jar": "Error: Unable to access jarfile nothere.jar",
		"json_log":    "cannot log in: 401 Unauthorized",
		"node_cause": "Error: cannot read configuration; caused by SyntaxError: Expected property name or " +
			"'}' in JSON at position 1",
		"node_heap":           "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
		"node_missing_file":   "Error: Cannot find module '.../nofile.js'",
		"node_missing_module": "Error: Cannot find module 'nonexistent-mod'",
		"node_missing_package": "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'nonexistent-mod' imported from " +
			".../b.mjs",
		"node_refused":  "Error: connect ECONNREFUSED 127.0.0.1:1",
		"node_rejected": "Error: GITHUB_TOKEN environment variable is required",
		"node_rejected_object": "UnhandledPromiseRejection: This error originated either by throwing inside of an " +
			"async function without a catch block, or by rejecting a promise which was not handled with .catch(). " +
			"The promise rejected with the reason \"#<Object>\".",
		"node_syntax":  "SyntaxError: Unexpected token ';'",
		"npm_eacces":   "npm error Error: EACCES: permission denied, mkdir '.../_cacache'",
		"npm_old_404":  "npm ERR! 404  '@example/none@*' is not in this registry.",
		"npm_warnings": "Please provide a path to the database as an argument",
		"npx_404": "npm error 404  The requested resource '@nonexistent-scope-xyz/none-such-pkg-abc@*' " +
			"could not be found or you do not have permission to access it.",
		"only_noise": "",
		"pip":        "ERROR: No matching distribution found for nonexistent-pkg-zz9-qq",
		"pydantic": "pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings " +
			"api_key Field required [type=missing, input_value={}, input_type=dict]",
		"python_chained":        "RuntimeError: cannot read configuration",
		"python_exit":           "fatal: API key missing",
		"python_group":          "ValueError: API key",
		"python_missing_dash_m": ".../python3: No module named nomodule_x",
		"python_missing_file":   ".../python3: can't open file '.../nofile.py': [Errno 2] No such file or directory",
		"python_missing_module": "ModuleNotFoundError: No module named 'nonexistent_mod'",
		"python_syntax":         "SyntaxError: invalid syntax",
		"ruby":                  ".../server.rb:3:in 'Object#connect': no database configured (RuntimeError)",
		"rust_error":            "Error: DATABASE_URL must be set",
		"rust_panic": "thread 'main' panicked at src/main.rs:12:5: called `Result::unwrap()` on an `Err` " +
			"value: NotPresent",
		"sh_denied":    "sh: 1: .../passwd: Permission denied",
		"sh_not_found": "sh: 1: foo-bar-x: not found",
		"typescript":   "TypeError [ERR_UNKNOWN_FILE_EXTENSION]: Unknown file extension \".ts\" for .../index.ts",
		"usage_last":   "server: no key was given",
		"usage_only":   "usage: server --key KEY",
		"uv_offline": "error: Failed to fetch: `https://packages.example/simple/mcp-server-time/`; caused by " +
			"dns error: failed to lookup address information: Temporary failure in name resolution",
		"uvx_no_executable": "An executable named `mcp-server-tme` is not provided by package `mcp-server-time`.",
		"uvx_unsatisfiable": "Because mcp-server-nothing was not found in the package registry and you require " +
			"mcp-server-nothing, we can conclude that your requirements are unsatisfiable.",
		"zod": "ZodError: [ \"path\": [ \"GITLAB_TOKEN\" \"message\": \"Required\"",
	}
	files, err := filepath.Glob(filepath.Join("testdata", "stderr", "*.txt"))
	if err != nil || len(files) != len(want) {
		t.Fatalf("got %d files, %v, want %d", len(files), err, len(want))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			expected, ok := want[name]
			if got := causeOf(strings.Split(string(raw), "\n")); !ok || got != expected {
				t.Errorf("got %q, want %q", got, expected)
			}
		})
	}
}

func TestWithoutPaths(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"an absolute path", "cannot open /home/ann/x/y.json", "cannot open .../y.json"},
		{"in quotes", "open '/etc/passwd': denied", "open '.../passwd': denied"},
		{"a directory", "no such directory: /srv/data/", "no such directory: .../"},
		{"on Windows", `C:\Users\ann\mcp\index.js missing`, ".../index.js missing"},
		{"a file URL", "imported from file:///home/ann/b.mjs", "imported from .../b.mjs"},
		{"after an equals sign", "path=/home/ann/b", "path=.../b"},
		{"a list", "PATH is /usr/bin:/home/ann/bin", "PATH is .../bin:.../bin"},
		{"a URL stays, without credentials", "GET https://ann:secret@api.example/v1/x?key=abc failed",
			"GET https://api.example/v1/x failed"},
		{"a connection string", "postgres://ann:secret@db.example:5432/app refused",
			"postgres://db.example:5432/app refused"},
		{"a package's name", "no package @example/none and/or none/x", "no package @example/none and/or none/x"},
		{"a date", "2026/11/21 failed", "2026/11/21 failed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := withoutPaths(test.text); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// The first lines of a server can contain the reason; a loop of messages does not push them
// out.
func TestFirstAndLastLinesAreKept(t *testing.T) {
	var lines firstAndLast
	lines.add("Error: no database")
	for range 10 * (keptFirstLines + keptLastLines) {
		lines.add("still here")
	}
	lines.add("bye")
	all := lines.all()
	if len(all) != keptFirstLines+keptLastLines || all[len(all)-1] != "bye" {
		t.Errorf("got %d lines and %q at the end, want %d and the last one", len(all), all[len(all)-1],
			keptFirstLines+keptLastLines)
	}
	if got := causeOf(all); got != "Error: no database" {
		t.Errorf("got %q, want the error", got)
	}
}

func FuzzCauseOf(f *testing.F) {
	f.Add("Error: x\n    at y\n\nNode.js v20")
	f.Add("\x1b[31m| +-+ ×\n╰─▶ {[")
	f.Fuzz(func(t *testing.T, text string) {
		if got := causeOf(strings.Split(text, "\n")); len([]rune(got)) > maxCause+len("...") {
			t.Errorf("got %d characters, want at most %d", len([]rune(got)), maxCause)
		}
	})
}
