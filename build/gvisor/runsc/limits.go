package main

import (
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// bootFlags are flags of `runsc boot` that `runsc create` sets from the host's memory and
// CPUs, with the annotations of the OCI configuration that override them. They determine
// the values visible to the code, and the number of files in its writable file systems.
var bootFlags = [...]struct{ annotation, flag string }{
	{"io.airlock.total-memory", "--total-memory="},
	{"io.airlock.total-host-memory", "--total-host-memory="},
	{"io.airlock.cpu-num", "--cpu-num="},
}

// maxSpec bounds the configuration that is read, in bytes.
const maxSpec = 16 << 20

// withAnnotatedLimits returns the arguments of `runsc boot` with the flags of the
// annotations. The last occurrence of a flag counts, so they are appended before the
// container's name. It ignores a value that is not a number; gVisor then reports its own.
func withAnnotatedLimits(args []string) []string {
	fd, ok := specOf(args)
	if !ok {
		return args
	}
	annotations := readAnnotations(fd)
	name := len(args) - 1
	limited := append([]string{}, args[:name]...)
	for _, known := range bootFlags {
		n, err := strconv.ParseUint(annotations[known.annotation], 10, 63)
		if err != nil || args[name-1] == known.flag+strconv.FormatUint(n, 10) {
			continue
		}
		limited = append(limited, known.flag+strconv.FormatUint(n, 10))
	}
	return append(limited, args[name])
}

// specOf returns the descriptor of the configuration in the arguments of `runsc boot`.
func specOf(args []string) (fd int, ok bool) {
	boot := false
	for _, arg := range args[:max(len(args)-1, 0)] {
		boot = boot || arg == "boot"
		if value, found := strings.CutPrefix(arg, "--spec-fd="); found && boot {
			fd, err := strconv.Atoi(value)
			return fd, err == nil
		}
	}
	return 0, false
}

// readAnnotations reads without moving the offset that gVisor reads from.
func readAnnotations(fd int) map[string]string {
	var spec struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := json.NewDecoder(io.NewSectionReader(descriptor(fd), 0, maxSpec)).Decode(&spec); err != nil {
		return nil // gVisor reads it too, and reports the error
	}
	return spec.Annotations
}

// descriptor is an open file that stays open: an os.File would close it some time.
type descriptor int

// ReadAt reads from the given offset, as io.ReaderAt demands.
func (d descriptor) ReadAt(b []byte, offset int64) (n int, err error) {
	for n < len(b) {
		read, err := unix.Pread(int(d), b[n:], offset+int64(n))
		if err != nil {
			return n, err
		}
		if read == 0 {
			return n, io.EOF
		}
		n += read
	}
	return n, nil
}
