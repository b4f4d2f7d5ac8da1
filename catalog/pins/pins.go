// Package pins stores each tool's definition when it is first seen, and reports
// definitions that changed since: a server can redefine a tool after it was reviewed.
//
// Pins are trust on first use. They do not show that a definition is good, only that it
// has not changed.
package pins

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/canon"
)

// Pin is one remembered definition.
type Pin struct {
	// Digest is that of the definition's canonical form, so that a server which
	// writes the same definition in another order of keys has not changed it.
	// It therefore differs from catalog.Tool's Digest.
	Digest string `json:"digest"`
	// Definition is what was seen, kept for the person who judges a change.
	Definition json.RawMessage `json:"definition"`
	// Since is when it was first seen or accepted, in UTC.
	Since time.Time `json:"since"`
	// Shown is the digest of the changed definition that a person was shown
	// last beside this one; empty when none was.
	Shown string `json:"shown,omitempty"`
	// Found is the digest of the changed definition that a process found last; empty when none did.
	Found string `json:"found,omitempty"`
}

// Change is a tool whose definition is not the pinned one any more.
type Change struct {
	ServerID string
	ToolName string
	Pinned   Pin
	Found    Pin
}

// Same reports whether other is the same change of the same tool.
func (c Change) Same(other Change) bool {
	return c.ServerID == other.ServerID && c.ToolName == other.ToolName && c.Pinned.Digest == other.Pinned.Digest &&
		c.Found.Digest == other.Found.Digest
}

// IsNew reports whether the tool has no accepted definition yet.
func (c Change) IsNew() bool { return c.Pinned.Digest == "" }

// Ref names a tool.
type Ref struct {
	ServerID string
	ToolName string
}

// Report is what comparing a catalog with the pins found, each list by server
// and tool.
type Report struct {
	New     []Ref    // seen for the first time; pinned now
	Changed []Change // not to be used before a person has accepted them
	// Released are servers whose quarantine ends, because all of their tools were accepted.
	Released []string
	// Gone are pinned tools of servers that answered, without these tools. Their
	// pins stay: a tool that comes back changed has changed.
	Gone []Ref
	// Outdated are servers with a tool that has its pinned definition here, while another process has found a changed
	// one: their lists may be old.
	Outdated []string
	// Generation is that of the stored book, see Store.Generation.
	Generation int64
}

// Book is all pins: by server, then by tool. The zero value is empty. It is not
// for concurrent use; a Store keeps one safely.
type Book struct {
	Servers map[string]map[string]Pin `json:"servers"`
	// Quarantined are servers whose new tools are not to be used before a person has accepted them,
	// with the digests of definitions that a person was shown, by tool.
	Quarantined map[string]map[string]string `json:"quarantined,omitempty"`
}

// Quarantine reports the tools of a server as changed until all of them are accepted.
func (b *Book) Quarantine(serverID string) {
	if b.Quarantined == nil {
		b.Quarantined = map[string]map[string]string{}
	}
	if b.Quarantined[serverID] == nil {
		b.Quarantined[serverID] = map[string]string{}
	}
}

// Check compares servers with the pins and pins what is new, except for servers in quarantine, whose
// new tools are changes with a zero Pinned. A server with a Problem was not heard and changes nothing.
func (b *Book) Check(servers []catalog.Server, now time.Time) Report {
	var report Report
	for _, server := range servers {
		if server.Problem != "" {
			continue
		}
		known := b.Servers[server.ID]
		shown, quarantined := b.Quarantined[server.ID]
		changes := len(report.Changed)
		reviewed := slices.Concat(server.Tools, server.Features)
		present := make(map[string]bool, len(reviewed))
		for _, tool := range reviewed {
			present[tool.Name] = true
			found := newPin(tool, now)
			pinned, ok := known[tool.Name]
			switch {
			case !ok && quarantined:
				report.Changed = append(report.Changed,
					Change{server.ID, tool.Name, Pin{Shown: shown[tool.Name]}, found})
			case !ok:
				b.set(server.ID, tool.Name, found)
				report.New = append(report.New, Ref{server.ID, tool.Name})
			case pinned.Digest != found.Digest:
				report.Changed = append(report.Changed, Change{server.ID, tool.Name, pinned, found})
			case pinned.Found != "" && !slices.Contains(report.Outdated, server.ID):
				report.Outdated = append(report.Outdated, server.ID)
			}
		}
		if quarantined && len(reviewed) > 0 && len(report.Changed) == changes {
			delete(b.Quarantined, server.ID)
			report.Released = append(report.Released, server.ID)
		}
		for name := range known {
			if !present[name] {
				report.Gone = append(report.Gone, Ref{server.ID, name})
			}
		}
		b.prune(server.ID, present)
	}
	report.sort()
	return report
}

// maxPins is how many pins of a server are kept. A server may list other resources each time.
const maxPins = 30_000

// prune forgets resources that a server does not list any more, if it has too many pins.
func (b *Book) prune(serverID string, present map[string]bool) {
	if len(b.Servers[serverID]) <= maxPins {
		return
	}
	maps.DeleteFunc(b.Servers[serverID], func(name string, _ Pin) bool {
		kind, _ := catalog.SplitFeatureName(name)
		return kind == catalog.KindResource && !present[name]
	})
}

// MarkFound stores that a process has found these changes, for Report.Outdated of the others. It ignores a change whose
// pin was replaced since the two were compared, and new tools, which are withheld from all.
func (b *Book) MarkFound(changes []Change) {
	for _, c := range changes {
		if pinned, ok := b.compared(c); ok && !c.IsNew() {
			pinned.Found = c.Found.Digest
			b.set(c.ServerID, c.ToolName, pinned)
		}
	}
}

// MarkShown stores that a person was shown these changes, so that they can be accepted. It ignores a
// change whose pin was replaced since the two were compared.
func (b *Book) MarkShown(changes []Change) {
	for _, c := range changes {
		pinned, ok := b.compared(c)
		switch {
		case ok && c.IsNew():
			b.Quarantined[c.ServerID][c.ToolName] = c.Found.Digest
		case ok:
			pinned.Shown = c.Found.Digest
			b.set(c.ServerID, c.ToolName, pinned)
		}
	}
}

// Accept pins what a person has seen and found good, all of it or nothing. It
// returns false if a pin is not the one that the person compared with.
func (b *Book) Accept(changes []Change, now time.Time) bool {
	for _, c := range changes {
		if _, ok := b.compared(c); !ok {
			return false
		}
	}
	for _, c := range changes {
		c.Found.Since = now.UTC()
		b.set(c.ServerID, c.ToolName, c.Found)
	}
	return true
}

// compared returns the pin that a change was found against, if it still is the pin.
func (b *Book) compared(c Change) (Pin, bool) {
	pinned, ok := b.Servers[c.ServerID][c.ToolName]
	if c.IsNew() {
		return pinned, !ok && b.Quarantined[c.ServerID] != nil
	}
	return pinned, ok && pinned.Digest == c.Pinned.Digest
}

func (b *Book) set(serverID, name string, pin Pin) {
	if b.Servers == nil {
		b.Servers = map[string]map[string]Pin{}
	}
	if b.Servers[serverID] == nil {
		b.Servers[serverID] = map[string]Pin{}
	}
	b.Servers[serverID][name] = pin
}

func newPin(tool catalog.Tool, now time.Time) Pin {
	definition := tool.Reviewed()
	return Pin{Digest: digest(definition), Definition: definition, Since: now.UTC()}
}

// digest returns the digest of the canonical form, or of the compacted bytes if a number does
// not fit a double (RFC 8785, section 3.2.2.3).
func digest(definition json.RawMessage) string {
	if canonical, err := canon.JSON(definition); err == nil {
		return canon.Digest(canonical)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, definition); err != nil {
		return canon.Digest(definition)
	}
	return canon.Digest(compact.Bytes())
}

func (r *Report) sort() {
	compare := func(a, b Ref) int {
		return cmp.Or(cmp.Compare(a.ServerID, b.ServerID), cmp.Compare(a.ToolName, b.ToolName))
	}
	slices.SortFunc(r.New, compare)
	slices.SortFunc(r.Gone, compare)
	slices.SortFunc(r.Changed, func(a, b Change) int {
		return compare(Ref{a.ServerID, a.ToolName}, Ref{b.ServerID, b.ToolName})
	})
}

// check returns an error if a pin does not have the digest of its definition.
func (b *Book) check() error {
	for _, server := range slices.Sorted(maps.Keys(b.Servers)) {
		for _, name := range slices.Sorted(maps.Keys(b.Servers[server])) {
			if pin := b.Servers[server][name]; pin.Digest != digest(pin.Definition) {
				return fmt.Errorf("they are damaged: the pin of tool %q of server %q does not have its digest", name,
					server)
			}
		}
	}
	return nil
}
