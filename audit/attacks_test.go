package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/airlock-mcp/airlock/audit"
)

type attack struct {
	name string
	do   func(t *testing.T)
}

// attacks lists all manipulations of the victim, for each location.
func (v victim) attacks(t *testing.T) []attack {
	lines, file := v.lines(t)
	kept := v.checkpoints(t)
	var all []attack
	add := func(do func(t *testing.T), name string, values ...any) {
		all = append(all, attack{fmt.Sprintf(name, values...), do})
	}
	change := func(edit func(lines [][]byte, file []string) ([][]byte, []string)) func(t *testing.T) {
		return func(t *testing.T) {
			changed, in := edit(slices.Clone(lines), slices.Clone(file))
			for _, path := range file {
				write(t, path, "")
			}
			rewrite(t, changed, in)
		}
	}
	for i := range lines {
		edit := func(chained bool) func([][]byte, []string) ([][]byte, []string) {
			return func(l [][]byte, f []string) ([][]byte, []string) {
				l[i] = rehash(t, bytes.Replace(l[i], []byte(`"kind":"`), []byte(`"detail":"x","kind":"`), 1))
				if chained {
					l = rechain(t, l, i)
				}
				return l, f
			}
		}
		add(change(edit(false)), "record %d is edited, with a hash that fits", i+1)
		add(change(edit(true)), "record %d is edited, and all that follow are chained anew", i+1)
		remove := func(l [][]byte, f []string) ([][]byte, []string) {
			return slices.Delete(l, i, i+1), slices.Delete(f, i, i+1)
		}
		add(change(remove), "record %d is removed", i+1)
		add(change(func(l [][]byte, f []string) ([][]byte, []string) {
			l, f = remove(l, f)
			return rechain(t, l, min(i, len(l)-1)), f
		}), "record %d is removed, and all that follow are chained anew", i+1)
		add(change(func(l [][]byte, f []string) ([][]byte, []string) {
			return rechain(t, slices.Insert(l, i, forged(t, l[i])), i), slices.Insert(f, i, f[i])
		}), "a record is added before record %d, and all that follow are chained anew", i+1)
		add(change(func(l [][]byte, f []string) ([][]byte, []string) { return l[:i], f[:i] }),
			"the log ends before record %d", i+1)
		add(change(func(l [][]byte, f []string) ([][]byte, []string) {
			l[i] = l[i][:len(l[i])/2]
			return l[:i+1], f[:i+1]
		}), "the log ends in the middle of record %d", i+1)
		if i > 0 {
			add(change(func(l [][]byte, f []string) ([][]byte, []string) {
				l[i-1], l[i] = l[i], l[i-1]
				return rechain(t, l, i-1), f
			}), "records %d and %d change places, and all are chained anew", i, i+1)
			add(change(func(l [][]byte, f []string) ([][]byte, []string) {
				if f[i] != f[i-1] {
					f[i] = f[i-1]
				} else {
					f[i-1] = f[max(0, i-2)]
					for j := i; j < len(f); j++ {
						f[j] = file[len(file)-1]
					}
				}
				return l, f
			}), "the files are divided at another place than record %d", i+1)
		}
	}
	for _, n := range []int{1, 2, 100, 300} {
		add(change(func(l [][]byte, f []string) ([][]byte, []string) {
			from := len(l)
			for range n {
				l, f = append(l, forged(t, lines[2])), append(f, f[len(f)-1])
			}
			return rechain(t, l, from), f
		}), "%d forged records are added at the end", n)
	}
	for _, garbage := range []string{"x", `{"seq":`, "\n", "{}\n"} {
		add(func(t *testing.T) {
			write(t, file[len(file)-1], string(readFile(t, file[len(file)-1]))+garbage)
		}, "%q is added at the end", garbage)
	}
	v.checkpointAttacks(t, add, kept, lines, change)
	v.fileAttacks(t, add, lines, file)
	return all
}

func (v victim) checkpointAttacks(t *testing.T, add func(func(*testing.T), string, ...any), kept, lines [][]byte,
	change func(func([][]byte, []string) ([][]byte, []string)) func(*testing.T)) {
	rewriteBehind := func(size int) func(*testing.T) {
		return change(func(l [][]byte, f []string) ([][]byte, []string) {
			for i := size; i < len(l); i++ {
				l[i] = bytes.ReplaceAll(l[i], []byte(`"files"`), []byte(`"fakes"`))
			}
			return rechain(t, l, size), f
		})
	}
	cutBehind := func(size int) func(*testing.T) {
		return change(func(l [][]byte, f []string) ([][]byte, []string) { return l[:size], f[:size] })
	}
	for i := range kept {
		size, old := sizeOf(t, kept[i]), i < len(kept)-1
		if old {
			add(func(t *testing.T) { v.asHead(t, kept[i]) }, "the head is put back to checkpoint %d", i)
			add(func(t *testing.T) { v.asHead(t, kept[i]); rewriteBehind(size)(t) },
				"the head is put back to checkpoint %d, and what follows is rewritten", i)
			add(func(t *testing.T) {
				v.asHead(t, kept[i])
				v.keep(t, kept[:i+1])
				rewriteBehind(size)(t)
			}, "head and checkpoints are put back to %d, and what follows is rewritten", i)
			add(func(t *testing.T) {
				v.asHead(t, kept[i])
				v.keep(t, kept[:i+1])
				cutBehind(size)(t)
			}, "head, checkpoints and records are put back to %d", i)
			add(func(t *testing.T) {
				v.asHead(t, kept[i])
				v.keep(t, kept[:i])
				cutBehind(size)(t)
			}, "head and records are put back to %d, as if it were being kept", i)
			add(func(t *testing.T) { v.keep(t, kept[:i+1]) }, "the checkpoints end behind %d", i)
			add(func(t *testing.T) {
				swapped := slices.Clone(kept)
				swapped[i], swapped[i+1] = kept[i+1], kept[i]
				v.keep(t, swapped)
			}, "checkpoints %d and %d change places", i, i+1)
		}
		add(func(t *testing.T) { v.keep(t, slices.Delete(slices.Clone(kept), i, i+1)) }, "checkpoint %d is removed", i)
		add(func(t *testing.T) { v.keep(t, slices.Insert(slices.Clone(kept), i, kept[i])) }, "checkpoint %d is doubled",
			i)
		add(func(t *testing.T) {
			replaced := slices.Clone(kept)
			replaced[i] = kept[(i+1)%len(kept)]
			v.keep(t, replaced)
		}, "checkpoint %d is replaced by the next", i)
		add(func(t *testing.T) {
			cut := slices.Clone(kept[:i+1])
			cut[i] = cut[i][:len(cut[i])/2]
			v.keep(t, cut)
		}, "the checkpoints end in the middle of %d", i)
		add(func(t *testing.T) {
			v.keep(t, append(slices.Clone(kept), kept[i][:len(kept[i])/3]))
		}, "the beginning of checkpoint %d is added", i)
	}
}

func (v victim) fileAttacks(t *testing.T, add func(func(*testing.T), string, ...any), lines [][]byte, file []string) {
	names := []string{"head", "checkpoints"}
	for _, path := range slices.Compact(slices.Clone(file)) {
		names = append(names, filepath.Base(path))
	}
	for _, name := range names {
		add(func(t *testing.T) { remove(t, v.path(name)) }, "%s is removed", name)
		add(func(t *testing.T) { write(t, v.path(name), "") }, "%s is emptied", name)
		add(func(t *testing.T) {
			whole := readFile(t, v.path(name))
			write(t, v.path(name), string(whole[:len(whole)-1]))
		}, "%s loses its last byte", name)
		for age, earlier := range v.earlier[:len(v.earlier)-1] {
			old, err := os.ReadFile(filepath.Join(earlier, name))
			if err != nil || bytes.Equal(old, readFile(t, v.path(name))) {
				continue
			}
			add(func(t *testing.T) { write(t, v.path(name), string(old)) }, "%s is put back to state %d", name, age)
		}
	}
	for _, name := range names {
		add(func(t *testing.T) {
			if err := errors.Join(os.Rename(v.path(name), v.path(name)+".real"),
				os.Symlink(v.path(name)+".real", v.path(name))); err != nil {
				t.Fatal(err)
			}
		}, "%s is replaced by a link to a copy", name)
		add(func(t *testing.T) {
			remove(t, v.path(name))
			if err := syscall.Mkfifo(v.path(name), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "%s is replaced by a pipe", name)
		add(func(t *testing.T) {
			remove(t, v.path(name))
			if err := os.Mkdir(v.path(name), 0o700); err != nil {
				t.Fatal(err)
			}
		}, "%s is replaced by a directory", name)
	}
	for age, earlier := range v.earlier[:len(v.earlier)-1] {
		add(func(t *testing.T) {
			if err := os.RemoveAll(v.dir); err != nil {
				t.Fatal(err)
			}
			copyDir(t, earlier, v.dir)
		}, "the whole directory is put back to state %d", age)
	}
	add(func(t *testing.T) {
		if err := os.RemoveAll(v.dir); err != nil {
			t.Fatal(err)
		}
	}, "the directory is removed")
	add(func(t *testing.T) {
		remove(t, v.path("head"))
		remove(t, v.path("checkpoints"))
	}, "head and checkpoints are removed")
	add(func(t *testing.T) {
		remove(t, v.path("head"))
		remove(t, v.path("checkpoints"))
		l := slices.Clone(lines)
		l[2] = forged(t, l[2])
		rewrite(t, rechain(t, l, 2), file)
	}, "head and checkpoints are removed, and the log is rewritten")
	add(func(t *testing.T) {
		other := newVictim(t)
		if err := os.RemoveAll(v.dir); err != nil {
			t.Fatal(err)
		}
		copyDir(t, other.dir, v.dir)
	}, "another Airlock's log takes its place")
	add(func(t *testing.T) {
		// One of the same keys, with as many records.
		twin := victim{dir: filepath.Join(filepath.Dir(v.dir), "twin"), keys: v.keys}
		l := open(t, twin.dir, twin.opts())
		for range len(lines) {
			if err := l.Append(t.Context(), outcome("call_1")); err != nil {
				t.Fatal(err)
			}
		}
		l.Close()
		if err := errors.Join(os.RemoveAll(v.dir), os.Rename(twin.dir, v.dir)); err != nil {
			t.Fatal(err)
		}
	}, "another log of the same keys takes its place")
	add(func(t *testing.T) {
		path := filepath.Join(v.dir, "writers", "w_0123456789abcdef0123456789abcdef")
		write(t, path, "1")
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		from := len(lines)
		l, in := append(slices.Clone(lines), forged(t, lines[2])), append(slices.Clone(file), file[len(file)-1])
		rewrite(t, rechain(t, l, from), in)
	}, "a record is added while a self-made file in writers is locked")
}

// An attacker who can write the log's directory, and not the keys, tries all of
// this. Verify finds it, and the next start refuses or records it for good.
func TestAttacksOnTheLog(t *testing.T) {
	v := newVictim(t)
	attacks := v.attacks(t)
	if len(attacks) < 200 {
		t.Fatalf("only %d attacks: the test proves little", len(attacks))
	}
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			v.restore(t)
			before := recovered(v.dir)
			a.do(t)
			report, err := audit.Verify(v.dir, &audit.VerifyOptions{Keys: v.keys})
			if err == nil && report.OK() {
				t.Errorf("verify finds nothing: %+v", report)
			}
			l, err := audit.Open(v.dir, v.opts())
			if err != nil {
				return
			}
			l.Close()
			if recovered(v.dir) == before {
				t.Error("the next start finds nothing")
			}
		})
	}
	v.restore(t)
	open(t, v.dir, v.opts()).Close()
}

// recovered counts the records that report a damaged log.
func recovered(dir string) int {
	n := 0
	paths, _ := filepath.Glob(filepath.Join(dir, "audit-*.jsonl"))
	for _, path := range paths {
		text, _ := os.ReadFile(path)
		n += bytes.Count(text, []byte(`"kind":"recovered"`))
	}
	return n
}

// A file that was mapped into memory and changed before a start has read it can
// be changed again without a new change time, as long as the kernel has not
// written it out.
func TestAChangeThroughMemoryIsFound(t *testing.T) {
	defer audit.SettleAtOnce()()
	v := newVictim(t)
	path := v.files(t)[0]
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	memory, err := syscall.Mmap(int(f.Fd()), 0, len(readFile(t, path)), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(memory)
	at := bytes.Index(memory, []byte(`"files"`))
	if at < 0 {
		t.Fatal("the record has no server")
	}
	memory[at+1] = 'f' // as it was
	for range 2 {
		l, err := audit.Open(v.dir, v.opts())
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
	memory[at+1] = 'm'
	if l, err := audit.Open(v.dir, v.opts()); err == nil {
		l.Close()
		t.Error("the next start finds nothing")
	}
}
