package runsc_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Issue 32: a program that ends within a second reads the time without system calls (build/gvisor/patches).
func TestTheClocksAreReadySoon(t *testing.T) {
	dir := t.TempDir()
	logs := dir + "/logs/"
	cmd := exec.Command(testenv.Sandbox(t).Runsc, "--root="+dir+"/root", "--network=none", "--ignore-cgroups",
		"--rootless="+strconv.FormatBool(os.Geteuid() != 0), "--debug", "--debug-log="+logs,
		"do", "--force-overlay=false", "/bin/sleep", "0.5")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	files, err := filepath.Glob(logs + "*.boot.txt")
	if err != nil || len(files) != 1 {
		t.Fatalf("logs of the kernel: got %v, %v; want one", files, err)
	}
	log, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, clock := range []string{"Monotonic", "Realtime"} {
		if !strings.Contains(string(log), "CalibratedClock("+clock+"): ready") {
			t.Errorf("the clock %s was not ready when the program ended", clock)
		}
	}
}
