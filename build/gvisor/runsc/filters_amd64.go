package main

import (
	_ "unsafe" // for go:linkname

	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
	"gvisor.dev/gvisor/runsc/boot/filter"
)

// programs are the filters that gVisor finds ready. Its own build fills them by
// replacing a source file, which the go command does not do to a module.
//
//go:linkname programs gvisor.dev/gvisor/runsc/boot/filter.precompiledPrograms
var programs map[string]precompiledseccomp.Program

func addFilters() {
	filter.ListPrecompiled() // makes the map, once
	programs[kernelFilter.Name] = kernelFilter
}
