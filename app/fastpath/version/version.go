// Package version prints the version of Airlock before the rest of the program is
// initialised, which takes several times as long.
//
// Go initialises packages in the order of their import paths as soon as what they import
// is initialised (The Go Programming Language Specification, "Program initialization"; the
// linker keeps to it for the whole program since Go 1.21). This package imports nothing
// that imports much, so its turn comes before most of what is large. In another order it
// would be slower, and do the same.
package version

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/airlock-mcp/airlock/app/release/build"
)

// A variable is declared because begin has to run before main.main.
var _ = begin(os.Args)

// begin runs the command line and exits the process if it is one of these:
//
//	airlock version
//	airlock --version
//
// Otherwise it returns true. A link under another name is another program, see cli.Named.
func begin(args []string) bool {
	if len(args) != 2 || filepath.Base(args[0]) != "airlock" {
		return true
	}
	switch args[1] {
	case "version", "--version":
		finish(os.Stdout, build.Line()+"\n")
	}
	return true
}

// finish prints text and ends the process. It returns if the text cannot be written: the rest
// of the program then gets the same error and reports it.
func finish(to *os.File, text string) {
	// A closed reader is an error of the write, as in package cli, and not a signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if _, err := to.WriteString(text); err == nil {
		os.Exit(0)
	}
}
