package main

import (
	"bufio"
	"debug/elf"
	"debug/gosym"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// tracing is the mount point of the kernel's tracefs (Linux, Documentation/trace/uprobetracer.rst).
const tracing = "/sys/kernel/tracing"

// probe is a place in a Go program: the beginning of a function.
type probe struct {
	name     string // of the event; letters, digits and underscores
	program  string
	function string // with its package, as the Go runtime has it
}

// event is the start of a function.
type event struct {
	at   int64 // nanoseconds of CLOCK_MONOTONIC, to the resolution
	name string
}

// resolution is that of an event's time, in nanoseconds.
const resolution = 1000

// probes are locations in programs at which the kernel records the time. The measured programs
// contain no code for it; each probe costs them an interrupt. gVisor's kernel does not start with
// a probe in it.
type probes struct {
	group    string // of the events, of this process alone
	instance string // a buffer of our own
	names    []string
}

// newProbes sets the probes, which note nothing yet. Close removes them.
func newProbes(all []probe) (p *probes, err error) {
	p = &probes{group: fmt.Sprintf("bench_%d", os.Getpid())}
	p.instance = filepath.Join(tracing, "instances", p.group)
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	tables := map[string]*functions{}
	for _, one := range all {
		if tables[one.program] == nil {
			if tables[one.program], err = readFunctions(one.program); err != nil {
				return p, fmt.Errorf("reading the functions of %q: %w", one.program, err)
			}
		}
		offset, err := tables[one.program].offset(one.function)
		if err != nil {
			return p, fmt.Errorf("%q: %w", one.program, err)
		}
		if err := p.tell("uprobe_events", fmt.Sprintf(
			"p:%s/%s %s:0x%x", p.group, one.name, one.program, offset)); err != nil {
			return p, err
		}
		p.names = append(p.names, one.name)
	}
	if err := os.Mkdir(p.instance, 0o700); err != nil {
		return p, err
	}
	return p, errors.Join(p.set("trace_clock", "mono"), p.set("buffer_size_kb", "4096"))
}

// tell adds a line to a file of tracefs.
func (p *probes) tell(file, line string) error {
	f, err := os.OpenFile(filepath.Join(tracing, file), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// set writes a file of the buffer.
func (p *probes) set(file, value string) error {
	return os.WriteFile(filepath.Join(p.instance, file), []byte(value), 0)
}

// during notes what happens while f runs, and returns it in the order of time.
func (p *probes) during(f func() error) ([]event, error) {
	enable := filepath.Join("events", p.group, "enable")
	if err := errors.Join(p.set("trace", ""), p.set(enable, "1")); err != nil {
		return nil, err
	}
	err := f()
	if err := errors.Join(err, p.set(enable, "0")); err != nil {
		return nil, err
	}
	return p.noted()
}

// eventLine is how the buffer shows an event: task-thread [processor] flags seconds: name: place.
var eventLine = regexp.MustCompile(`\[\d+\] \S+ +(\d+)\.(\d{6}): (\w+): `)

func (p *probes) noted() ([]event, error) {
	f, err := os.Open(filepath.Join(p.instance, "trace"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var events []event
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "LOST") {
			return nil, errors.New("the kernel's buffer was too small for all events")
		}
		match := eventLine.FindStringSubmatch(lines.Text())
		if match == nil {
			continue
		}
		at, err := strconv.ParseInt(match[1]+match[2], 10, 64)
		if err != nil {
			return nil, err
		}
		events = append(events, event{at * resolution, match[3]})
	}
	return events, lines.Err()
}

func (p *probes) close() error {
	var errs []error
	if _, err := os.Stat(p.instance); err == nil {
		errs = append(errs, os.Remove(p.instance))
	}
	for _, name := range p.names {
		errs = append(errs, p.tell("uprobe_events", "-:"+p.group+"/"+name))
	}
	return errors.Join(errs...)
}

// functions are those of a Go program, stripped or not: the runtime has their table.
type functions struct {
	begin map[string]uint64
	text  elf.ProgHeader
}

func readFunctions(program string) (*functions, error) {
	file, err := elf.Open(program)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines, text := file.Section(".gopclntab"), file.Section(".text")
	if lines == nil || text == nil {
		return nil, errors.New("it is not a Go program")
	}
	raw, err := lines.Data()
	if err != nil {
		return nil, err
	}
	table, err := gosym.NewTable(nil, gosym.NewLineTable(raw, text.Addr))
	if err != nil {
		return nil, err
	}
	f := &functions{begin: map[string]uint64{}}
	for _, function := range table.Funcs {
		f.begin[function.Name] = function.Entry
	}
	for _, part := range file.Progs {
		if part.Type == elf.PT_LOAD && part.Vaddr <= text.Addr && text.Addr < part.Vaddr+part.Memsz {
			f.text = part.ProgHeader
		}
	}
	return f, nil
}

// offset returns where in the program's file a function begins.
func (f *functions) offset(function string) (uint64, error) {
	begin, ok := f.begin[function]
	if !ok {
		return 0, fmt.Errorf("there is no function %s: it was renamed, or the compiler has put it into its callers",
			function)
	}
	return begin - f.text.Vaddr + f.text.Off, nil
}
