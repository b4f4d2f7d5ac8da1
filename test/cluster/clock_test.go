package cluster

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// ahead returns a copy of the program whose clock is ahead by d. Time namespaces do not move the clock that shows the
// time of day, and a static program loads no library that does. So an instruction is added to the function time.now of
// Go. It takes the place of the code for kernels without a vDSO, which follows. It is known for amd64 only: other
// machines get the program as it is.
func ahead(t *testing.T, d time.Duration) string {
	t.Helper()
	program := filepath.Join(testenv.RepoRoot(t), "bin", "airlock")
	if runtime.GOARCH != "amd64" {
		return program
	}
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	file, err := elf.NewFile(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	code := file.Section(".text")
	for _, s := range symbols {
		if s.Name != "time.now" {
			continue
		}
		// MOVQ DI, BX; ADDQ DX, CX; ADDQ $16, SP; POPQ BP; RET. The seconds are in AX.
		end := []byte{0x48, 0x89, 0xfb, 0x48, 0x01, 0xd1, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3}
		function := text[s.Value-code.Addr+code.Offset:][:s.Size]
		if at := bytes.Index(function, end); at >= 0 && at+2*len(end) < len(function) {
			add := binary.LittleEndian.AppendUint32([]byte{0x48, 0x05}, uint32(d/time.Second)) // ADDQ $seconds, AX
			copy(function[at:], append(add, end...))
			changed := filepath.Join(t.TempDir(), "airlock")
			if err := os.WriteFile(changed, text, 0o700); err != nil {
				t.Fatal(err)
			}
			return changed
		}
	}
	t.Fatal("the clock of a program cannot be moved: time.now of this version of Go is not known")
	return ""
}
