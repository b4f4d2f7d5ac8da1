package main

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// program is one executable with what it was built from.
type program struct {
	name string
	info *debug.BuildInfo
}

// readPrograms reads what the compiler recorded in each program of a directory.
func readPrograms(dir string) ([]program, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var programs []program
	for _, e := range entries {
		info, err := buildinfo.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading what %s was built from: %w", e.Name(), err)
		}
		programs = append(programs, program{e.Name(), info})
	}
	return programs, nil
}

// modules are those that the program contains, with replacements in place.
func (p program) modules() []*debug.Module {
	var all []*debug.Module
	for _, m := range p.info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		all = append(all, m)
	}
	return all
}

// licenceName is the form of the names of files that hold the terms of a module.
var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)`)

// licences joins the terms of every module that the programs contain, each text
// once, and those of Go itself. A module without any is an error.
func (r *release) licences(dir string) ([]byte, error) {
	programs, err := readPrograms(dir)
	if err != nil {
		return nil, err
	}
	of := map[string][]string{} // text → modules
	add := func(module, dir string) error {
		texts, err := terms(dir)
		if err == nil && len(texts) == 0 {
			err = fmt.Errorf("%s has no file with its licence", module)
		}
		for _, text := range texts {
			of[text] = append(of[text], module)
		}
		return err
	}
	if err := add("Go "+runtime.Version(), goroot()); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, p := range programs {
		for _, m := range p.modules() {
			id := m.Path + "@" + m.Version
			if seen[id] {
				continue
			}
			seen[id] = true
			at, err := moduleDirectory(id)
			if err != nil {
				return nil, err
			}
			if err := add(id, at); err != nil {
				return nil, err
			}
		}
	}
	var out bytes.Buffer
	texts := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Compare(of[a][0]+a, of[b][0]+b) })
	for _, text := range texts {
		fmt.Fprintf(&out, "%s\n\n%s\n\n%s\n\n", strings.Repeat("=", 80), strings.Join(of[text], "\n"),
			strings.TrimSpace(text))
	}
	return out.Bytes(), nil
}

// goroot is the directory of the Go that this program is run by.
func goroot() string {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return runtime.GOROOT()
	}
	return strings.TrimSpace(string(out))
}

// terms reads the files at the top of a directory that hold its terms.
func terms(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, e := range entries {
		if e.IsDir() || !licenceName.MatchString(e.Name()) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(b))
	}
	return texts, nil
}

// moduleDirectory returns the directory with the source of a module, PATH@VERSION.
func moduleDirectory(id string) (string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", id).Output()
	if err != nil {
		return "", fmt.Errorf("fetching %s: %w", id, err)
	}
	var answer struct{ Dir string }
	if err := json.Unmarshal(out, &answer); err != nil {
		return "", err
	}
	return answer.Dir, nil
}
